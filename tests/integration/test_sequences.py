# SPDX-License-Identifier: Apache-2.0
"""Sequence batching: control inputs, and state that Triton keeps."""

from __future__ import annotations

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from tests.support.metrics import counted, sample
from tests.support.models import write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

SEQUENCES, STEPS, SIZE = 8, 50, 5

RNN = """
    import jax.numpy as jnp

    SIGNATURE = {"inputs": {"x": ("FP32", [5])}, "state": {"h": ("FP32", [5])},
                 "max_batch_size": 8}

    def predict(params, x, h):
        h = jnp.tanh(x @ params["w"] + h @ params["u"])
        return {"y": h * 2, "h": h}
"""


STATE = """state {
    input_name: "h" output_name: "h" data_type: TYPE_FP32 dims: 5
    initial_state { name: "zeros" data_type: TYPE_FP32 dims: 5 zero_data: true }
}"""


def weights() -> dict[str, np.ndarray]:
    chance = np.random.default_rng(3)
    return {name: chance.normal(size=(SIZE, SIZE)).astype(np.float32) / 2 for name in ("w", "u")}


def expected(xs: np.ndarray) -> np.ndarray:
    """One lax.scan over the sequence."""
    params = weights()

    def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jnp.tanh(x @ params["w"] + h @ params["u"])
        return h, h * 2

    return np.asarray(jax.lax.scan(step, jnp.zeros(SIZE), jnp.asarray(xs))[1])


@pytest.mark.parametrize("strategy", ["", "oldest { max_candidate_sequences: 8 }", "direct {}"])
def test_interleaved_sequences_equal_one_scan_each(
    server: TritonServer, repository: Path, strategy: str
) -> None:
    name = "rnn_" + (strategy.split()[0] if strategy else "default")
    config = f'backend: "jax"\nsequence_batching {{ {strategy} {STATE} }}\n' if strategy else None
    write_model(repository, name, RNN, params=weights(), config=config)
    server.load_model(name)
    xs = np.random.default_rng(4).normal(size=(SEQUENCES, STEPS, SIZE)).astype(np.float32)
    got = np.zeros_like(xs)
    failures: list[str] = []

    def run(sequence: int) -> None:
        module = (triton_http, triton_grpc)[sequence % 2]
        url = (server.http_url, server.grpc_url)[sequence % 2]
        client = module.InferenceServerClient(url)
        try:
            for step in range(STEPS):
                tensor = module.InferInput("x", [1, SIZE], "FP32")
                tensor.set_data_from_numpy(xs[sequence, step][None])
                result = client.infer(
                    name,
                    [tensor],
                    sequence_id=100 + sequence,
                    sequence_start=step == 0,
                    sequence_end=step == STEPS - 1,
                )
                names = [
                    o["name"] if sequence % 2 == 0 else o.name
                    for o in (
                        result.get_response()["outputs"]
                        if sequence % 2 == 0
                        else result.get_response().outputs
                    )
                ]
                if names != ["y"]:
                    failures.append(f"outputs {names}: the state is Triton's to keep")
                got[sequence, step] = result.as_numpy("y")[0]
        except Exception as error:
            failures.append(f"sequence {sequence}: {error}")
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(sequence,)) for sequence in range(SEQUENCES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for sequence in range(SEQUENCES):
        assert np.abs(got[sequence] - expected(xs[sequence])).max() <= 1e-5


def test_control_inputs_reach_predict(server: TritonServer, repository: Path) -> None:
    config = """
        backend: "jax"
        max_batch_size: 4
        sequence_batching {
          control_input {
            name: "START"
            control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }
          }
          control_input {
            name: "CORRID"
            control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }
          }
          state {
            input_name: "count" output_name: "counted" data_type: TYPE_INT32 dims: 1
            initial_state { name: "zero" data_type: TYPE_INT32 dims: 1 zero_data: true }
          }
        }
    """
    code = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("INT32", [1])}}

        def predict(params, x, START, CORRID, count):
            counted = jnp.where(START == 1, x, count + x)
            return {"total": counted + 0, "id": CORRID, "counted": counted}
    """
    write_model(repository, "controls", code, config=config)
    server.load_model("controls")
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    big = 2**40 + 7
    totals = []
    for start, end, value in (
        (True, False, 5),
        (False, False, 6),
        (False, True, 7),
        (True, True, 1),
    ):
        tensor = triton_grpc.InferInput("x", [1, 1], "INT32")
        tensor.set_data_from_numpy(np.full((1, 1), value, np.int32))
        result = client.infer(
            "controls", [tensor], sequence_id=big, sequence_start=start, sequence_end=end
        )
        totals.append(int(result.as_numpy("total")[0, 0]))
        assert int(result.as_numpy("id")[0, 0]) == big
    client.close()
    assert totals == [5, 11, 18, 1]


def test_only_what_clients_asked_is_counted(server: TritonServer, repository: Path) -> None:
    """Triton fills the slots of idle sequences with requests of its own."""
    config = f'backend: "jax"\nsequence_batching {{ direct {{}} {STATE} }}\n'
    write_model(repository, "counted_rnn", RNN, params=weights(), config=config)
    server.load_model("counted_rnn")
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    tensor = triton_grpc.InferInput("x", [1, SIZE], "FP32")
    tensor.set_data_from_numpy(np.ones((1, SIZE), np.float32))
    for sequence, start in ((1, True), (2, True), (3, True), (1, False)):
        client.infer("counted_rnn", [tensor], sequence_id=sequence, sequence_start=start)
    client.close()
    metrics = server.metrics()
    labels = {"model": "counted_rnn", "version": "1"}
    assert sample(metrics, "jax_request_failures", **labels) is None
    assert sample(metrics, "jax_real_rows", **labels) == 4
    assert counted(lambda: sample(server.metrics(), "nv_inference_count", **labels), 4) == 4


def test_a_state_may_be_listed_as_an_output(server: TritonServer, repository: Path) -> None:
    config = f"""
        backend: "jax"
        max_batch_size: 4
        output {{ name: "y" data_type: TYPE_FP32 dims: 5 }}
        output {{ name: "h" data_type: TYPE_FP32 dims: 5 }}
        sequence_batching {{ {STATE} }}
    """
    write_model(repository, "visible", RNN, params=weights(), config=config)
    server.load_model("visible")
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    tensor = triton_grpc.InferInput("x", [1, SIZE], "FP32")
    tensor.set_data_from_numpy(np.ones((1, SIZE), np.float32))
    for start in (True, False):
        result = client.infer("visible", [tensor], sequence_id=5, sequence_start=start)
        assert np.array_equal(result.as_numpy("y"), 2 * result.as_numpy("h"))
    client.close()


@pytest.mark.parametrize(
    ("code", "config", "words"),
    [
        (
            RNN.replace('"state": {"h": ("FP32", [5])}', '"state": {"h": ("FP32", [])}'),
            "",
            "give it one",
        ),
        (
            RNN.replace('"state": {"h": ("FP32", [5])}', '"state": {"h": ("FP32", [-1])}'),
            "",
            "initial_state",
        ),
        (
            RNN,
            'model_warmup { name: "w" batch_size: 1 inputs { key: "x" value '
            "{ data_type: TYPE_FP32 dims: 5 zero_data: true } } }",
            "model_warmup in config.pbtxt does not go with a state",
        ),
    ],
    ids=["scalar", "open", "warm-up"],
)
def test_states_that_triton_could_not_keep_are_refused(
    server: TritonServer,
    repository: Path,
    code: str,
    config: str,
    words: str,
    request: pytest.FixtureRequest,
) -> None:
    name = f"unkept_{request.node.callspec.id.replace('-', '_')}"
    write_model(repository, name, code, params=weights(), config=f'backend: "jax"\n{config}\n')
    with pytest.raises(ServerError) as refused:
        server.load_model(name)
    assert words in str(refused.value)


def test_states_that_a_config_forgot_are_spelled_out(
    server: TritonServer, repository: Path
) -> None:
    config = 'backend: "jax"\nsequence_batching { oldest { max_candidate_sequences: 4 } }\n'
    write_model(repository, "forgotten", RNN, params=weights(), config=config)
    with pytest.raises(ServerError) as refused:
        server.load_model("forgotten")
    message = str(refused.value)
    start = message.index("state { input_name")
    state = message[start : message.index("zero_data: true } }", start) + 19]
    config = config.replace("oldest", f"{state} oldest")
    (repository / "forgotten" / "config.pbtxt").write_text(config)
    server.load_model("forgotten")


@pytest.mark.parametrize(
    ("replace", "words"),
    [
        (
            ('"h": h}', '"g": h}'),
            "the state 'h' gets its new value from output 'h', which the model",
        ),
        (
            ('"h": h}', '"h": h[:, :3]}'),
            "the state 'h' is FP32[5], but its new value, output 'h', is",
        ),
        (('{"y": h * 2, ', "{"), "it has no outputs beside its states"),
    ],
    ids=["name", "dims", "nothing else"],
)
def test_a_state_that_does_not_fit_is_refused(
    server: TritonServer,
    repository: Path,
    replace: tuple[str, str],
    words: str,
    request: pytest.FixtureRequest,
) -> None:
    name = f"bad_state_{request.node.callspec.id.replace(' ', '_')}"
    write_model(repository, name, RNN.replace(*replace), params=weights())
    with pytest.raises(ServerError) as refused:
        server.load_model(name)
    assert words in str(refused.value)
