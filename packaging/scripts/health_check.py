#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The release images up to 24.10 have Python 3.10, older hosts 3.8: no newer syntax or library here.
# ruff: noqa: B905, UP041
"""Check that a tritonserver is live and ready, that its models are, and that each one answers.

One line is printed for each check: ``ok``, ``FAIL`` with the reason and the next step, or ``note``
for what was not checked or does not count. The exit status is 0 when nothing failed, 1 when
something did, 2 for a wrong option. Needs Python 3.8 or newer and nothing else; speaks to the
server's HTTP port.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import ssl
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

# Bytes for one element; BYTES has a length before each.
SIZES = {
    "BOOL": 1,
    "UINT8": 1,
    "UINT16": 2,
    "UINT32": 4,
    "UINT64": 8,
    "INT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "FP16": 2,
    "BF16": 2,
    "FP32": 4,
    "FP64": 8,
}
# "0" and not "": models that take numbers as text can read it too.
ONE_STRING = struct.pack("<I", 1) + b"0"

# What one probe may send: a model with larger inputs is not to be tried blindly.
MOST_BYTES = 256 << 20

SHOWN_CHARACTERS = 600
NO_TEXT = "no text"

# Without model control, Triton loads what is in its repository once: when it starts.
LOAD_AGAIN = "load it again, or restart a server without model control; the log says more"
# The backend's words where not the model is to blame, followed by their own remedy.
ENVIRONMENT = "Python environment "
# What ends a path, or the line that it is in.
ENDS_A_PATH = re.compile(r"[\x00-\x20\x7f/?]")


class CheckError(Exception):
    """A check that failed: why, and what to do next."""

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.next_step = next_step


class SkipCheck(Exception):  # noqa: N818  not an error
    """A check that does not apply."""


class NoteCheck(Exception):  # noqa: N818  not an error
    """Something to know that is no failure."""


class DeadlineError(Exception):
    """The time for all checks together is over."""


class UnreachableError(CheckError):
    """The server cannot be spoken to, so that no further check makes sense."""


class Answer(NamedTuple):
    """What the server said to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def one_line(text: str) -> str:
    """Make a server's words fit into one line of the report."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= SHOWN_CHARACTERS else flat[:SHOWN_CHARACTERS] + "…"


def _lower(headers: http.client.HTTPMessage) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class Server:
    """Triton's HTTP port."""

    def __init__(self, url: str, timeout: float) -> None:
        scheme, _, rest = url.rpartition("://")
        self.scheme = scheme or "http"
        self.address, _, prefix = rest.partition("/")
        self.prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
        self.deadline = time.monotonic() + timeout

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request; whatever keeps an answer from coming is a named UnreachableError."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise DeadlineError
        connect = (
            http.client.HTTPSConnection if self.scheme == "https" else http.client.HTTPConnection
        )
        connection = connect(self.address, timeout=left)
        # Else a path of other letters than ASCII's is refused here.
        setattr(connection, "_encode_request", str.encode)  # noqa: B010  it has its own
        try:
            connection.request(method, self.prefix + path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, _lower(response.headers), response.read())
        except socket.gaierror as error:
            raise UnreachableError(
                f"{self.address}: no such host ({error.strerror})",
                "correct --url",
            ) from None
        except ConnectionRefusedError:
            raise UnreachableError(
                f"{self.address}: connection refused",
                "start tritonserver, or give its HTTP address with --url (default port 8000)",
            ) from None
        except socket.timeout:  # TimeoutError from Python 3.10 on only
            raise DeadlineError from None
        except ssl.SSLError as error:
            raise UnreachableError(
                f"{self.address}: TLS: {one_line(str(error))}",
                "use http:// where the server has no TLS, and check its certificate where it has",
            ) from None
        except (http.client.HTTPException, ConnectionResetError, BrokenPipeError) as error:
            raise UnreachableError(
                "{}: expected an HTTP answer, got {}".format(
                    self.address, one_line(f"{type(error).__name__}: {error}")
                ),
                "give the HTTP port with --url (gRPC has another, 8001 by default), and look into "
                "the server's log",
            ) from None
        except OSError as error:
            raise UnreachableError(
                f"{self.address}: {error.strerror or error}", "check the network and --url"
            ) from None
        finally:
            connection.close()

    def ask_json(self, method: str, path: str, what: str, body: bytes | None = None) -> Any:
        """Send one request whose answer has to be JSON with status 200."""
        answer = self.ask(method, path, body)
        expect_ok(answer, what)
        return parse_json(answer.body, what)


def why_not(answer: Answer, plainly: str) -> str:
    """Return what a status other than 200 means; Triton answers 400 without a word at times."""
    said = error_text(answer.body)
    if answer.status == 400 and said == NO_TEXT:
        return plainly
    return f"expected status 200, got {answer.status}: {said}"


def error_text(body: bytes) -> str:
    """Return the server's own words from an error's body."""
    text = body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        text = value["error"]
    return one_line(text) or NO_TEXT


def expect_ok(answer: Answer, what: str) -> None:
    """Refuse every status but 200."""
    if answer.status != 200:
        raise CheckError(
            f"{what}: expected status 200, got {answer.status}: {error_text(answer.body)}",
            "look into the server's log",
        )


def parse_json(body: bytes, what: str) -> Any:
    """Read JSON; anything else is a CheckError that shows its beginning."""
    try:
        return json.loads(body.decode("utf-8"))
    except ValueError:
        shown = one_line(body[:80].decode("utf-8", "replace")) or "nothing"
        raise CheckError(
            f"{what}: expected JSON, got {shown}", "check that --url is Triton's HTTP port"
        ) from None


def expect(condition: bool, what: str, expected: str, got: object) -> None:
    """Refuse an answer that is not built as Triton's protocol says."""
    if not condition:
        raise CheckError(
            f"{what}: expected {expected}, got {one_line(repr(got))}",
            "check that --url is Triton's HTTP port, and look into the server's log",
        )


# -- the checks ------------------------------------------------------------------------------------


def check_live(server: Server) -> str:
    """Is the server's process there and answering?"""
    answer = server.ask("GET", "/v2/health/live")
    if answer.status != 200:
        raise UnreachableError(
            f"expected status 200, got {answer.status}: {error_text(answer.body)}",
            "check that --url is Triton's HTTP port",
        )
    return ""


def check_ready(server: Server, others: Sequence[str] = ()) -> str:
    """Does the server consider itself ready for inference?

    ``others`` are models that nobody asked about and that are not ready: they are reason enough
    for the server not to be, and none for this check to fail.
    """
    answer = server.ask("GET", "/v2/health/ready")
    if answer.status == 200:
        return ""
    reason = why_not(answer, "the server is not ready (a model failed to load, or is loading)")
    if others:
        raise NoteCheck(f"{reason}: {one_line(', '.join(others))}; of no account for --model")
    raise CheckError(
        reason, "see which model failed below; a server that is still loading needs more time"
    )


class Model(NamedTuple):
    """A model to check, with what the repository index says of its versions."""

    name: str
    states: list[dict[str, str]]


def repository_index(server: Server) -> list[dict[str, str]]:
    """Return the state of every model version that the server knows of."""
    what = "repository index"
    index = server.ask_json("POST", "/v2/repository/index", what, b"{}")
    well = isinstance(index, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in index
    )
    expect(well, what, "a list of models", index)
    return [{key: str(value) for key, value in entry.items()} for entry in index]


def should_be_ready(entry: Mapping[str, str]) -> bool:
    """Tell a model version that somebody wants served from one that nobody loaded."""
    if entry.get("state", "") == "":
        return False
    return not (entry["state"] == "UNAVAILABLE" and entry.get("reason", "") in ("", "unloaded"))


def model_path(name: str, version: str | None) -> str:
    """Return the path of a model, or of one of its versions.

    Triton decodes nothing of a path, so nothing is encoded: ``%20`` would be a part of the name.
    """
    if ENDS_A_PATH.search(name):
        raise SkipCheck("no request over HTTP can name it; ask it by gRPC, or rename its folder")
    path = "/v2/models/" + name
    return path if version is None else path + "/versions/" + version


def check_model_ready(server: Server, model: Model, version: str | None) -> str:
    """Is the model ready, and did none of its versions fail?"""
    failed = [
        entry
        for entry in model.states
        if should_be_ready(entry)
        and entry["state"] != "READY"
        and version in (None, entry.get("version"))
    ]
    if failed:
        said = "; ".join(
            "version {} is {}{}".format(
                entry.get("version", "?"),
                entry["state"],
                ": " + entry["reason"] if entry.get("reason") else "",
            )
            for entry in failed
        )
        blame_model = ENVIRONMENT not in said
        next_step = ("correct the model, and " if blame_model else "then ") + LOAD_AGAIN
        raise CheckError(one_line(said), next_step)
    if ENDS_A_PATH.search(model.name) and not model.states:
        raise CheckError("the server does not have it", "check the name")
    answer = server.ask("GET", model_path(model.name, version) + "/ready")
    if answer.status == 200:
        return ""
    said = why_not(answer, "it is not ready")
    if model.states:
        known = ", ".join(
            "version {} {}".format(entry.get("version") or "?", entry.get("state") or "not loaded")
            for entry in model.states
        )
        raise CheckError(
            f"{said} (the server has: {one_line(known)})",
            "load the model, or name another version",
        )
    raise CheckError(said, "check the name, and that the model is in the server's repository")


def probe_input(tensor: Mapping[str, Any], what: str) -> tuple[dict[str, Any], bytes]:
    """Make an input of zeros, with 1 for every dimension that is free."""
    name, datatype = tensor.get("name"), tensor.get("datatype")
    dims: Any = tensor.get("shape")
    expect(
        isinstance(name, str)
        and isinstance(dims, list)
        and all(isinstance(dim, int) for dim in dims),
        what,
        "an input with name, datatype and shape",
        tensor,
    )
    shape = [1 if dim < 0 else dim for dim in dims]
    count = 1
    for dim in shape:
        count *= dim
    if datatype == "BYTES":
        size = len(ONE_STRING)
    elif datatype in SIZES:
        size = SIZES[str(datatype)]
    else:
        raise SkipCheck(f"input {name} is of type {datatype}, which this check cannot make")
    if count * size > MOST_BYTES:
        raise SkipCheck(f"input {name} of shape {shape} would take {count * size >> 20} MiB")
    data = ONE_STRING * count if datatype == "BYTES" else bytes(count * size)
    header = {
        "name": name,
        "datatype": datatype,
        "shape": shape,
        "parameters": {"binary_data_size": len(data)},
    }
    return header, data


def probe_request(metadata: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Make an inference request that the model should be able to answer: JSON head and data."""
    if config.get("model_transaction_policy", {}).get("decoupled"):
        raise SkipCheck("is decoupled, which HTTP cannot ask; use a gRPC client")
    optional = {tensor.get("name") for tensor in config.get("input", []) if tensor.get("optional")}
    tensors = metadata.get("inputs", [])
    required = [tensor for tensor in tensors if tensor.get("name") not in optional]
    made = [probe_input(tensor, "metadata") for tensor in required or tensors]
    parameters: dict[str, Any] = {"binary_data_output": True}
    if "sequence_batching" in config:
        # A sequence of one request, under a number that no other client is likely to use.
        parameters["sequence_id"] = random.SystemRandom().randint(1 << 40, 1 << 48)
        parameters["sequence_start"] = True
        parameters["sequence_end"] = True
    head = {
        "id": "health-check",
        "inputs": [header for header, _ in made],
        "parameters": parameters,
    }
    return json.dumps(head).encode(), b"".join(data for _, data in made)


def check_output(declared: Mapping[str, Any], got: Mapping[str, Any], size: int | None) -> None:
    """Compare one output with what the model's metadata promises."""
    what = "output {}".format(declared.get("name"))
    datatype = got.get("datatype")
    shape: Any = got.get("shape")
    expect(datatype == declared.get("datatype"), what, str(declared.get("datatype")), datatype)
    dims = declared.get("shape")
    well = isinstance(shape, list) and all(isinstance(dim, int) for dim in shape)
    expect(well, what, "a shape", shape)
    if isinstance(dims, list):
        fits = len(shape) == len(dims) and all(d in (-1, s) for d, s in zip(dims, shape))
        expect(fits, what, f"shape {dims}", shape)
    count = 1
    for dim in shape:
        count *= dim
    if size is None:
        data = got.get("data")
        expect(isinstance(data, list), what, "data", data)
    elif datatype in SIZES:
        needed = count * SIZES[str(datatype)]
        expect(size == needed, what, f"{needed} bytes for shape {shape}", size)
    else:
        expect(size >= 4 * count, what, f"{count} strings", f"{size} bytes")


def devices(config: Mapping[str, Any]) -> str:
    """Say where the instances of a model are: nothing runs elsewhere than its config says."""
    groups = config.get("instance_group")
    places = []
    for group in groups if isinstance(groups, list) else []:
        kind = str(group.get("kind", "")).replace("KIND_", "") or "?"
        gpus = ",".join(str(gpu) for gpu in group.get("gpus") or [])
        places.append("{}{}".format(kind, " " + gpus if gpus else ""))
    return " and ".join(dict.fromkeys(places)) or "a device of the server's choice"


def check_inference(server: Server, name: str, version: str | None) -> str:
    """Does the model answer one request, with every output that it declares?"""
    path = model_path(name, version)
    metadata = server.ask_json("GET", path, "metadata")
    config = server.ask_json("GET", path + "/config", "config")
    for what, value in (("metadata", metadata), ("config", config)):
        expect(isinstance(value, dict), what, "an object", value)
    outputs = metadata.get("outputs", [])
    for what, value in (("inputs", metadata.get("inputs", [])), ("outputs", outputs)):
        well = isinstance(value, list) and all(isinstance(tensor, dict) for tensor in value)
        expect(well, "metadata", "a list of " + what, value)
    head, data = probe_request(metadata, config)
    begin = time.monotonic()
    answer = server.ask(
        "POST",
        path + "/infer",
        head + data,
        {
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(head)),
        },
    )
    milliseconds = (time.monotonic() - begin) * 1000
    if answer.status != 200:
        raise CheckError(
            f"expected status 200, got {answer.status}: {error_text(answer.body)}",
            "send the model a request of your own: it may refuse zeros; the log says more",
        )
    length = answer.headers.get("inference-header-content-length")
    end = len(answer.body) if length is None else int(length) if length.isdigit() else -1
    expect(0 <= end <= len(answer.body), "answer", "a header within it", length)
    reply = parse_json(answer.body[:end], "answer")
    expect(isinstance(reply, dict), "answer", "an object", reply)
    returned = reply.get("outputs")
    well = isinstance(returned, list) and all(isinstance(tensor, dict) for tensor in returned)
    expect(well, "answer", "a list of outputs", returned)
    by_name = {tensor.get("name"): tensor for tensor in returned}
    total = 0
    for tensor in returned:
        total += binary_size(tensor) or 0
    for declared in outputs:
        output = by_name.get(declared.get("name"))
        if output is None:
            raise CheckError(
                "output {}: expected in the answer, got only {}".format(
                    declared.get("name"), ", ".join(map(str, by_name)) or "no outputs"
                ),
                "correct the model, or the outputs in its config.pbtxt",
            )
        check_output(declared, output, binary_size(output))
    rest = len(answer.body) - end
    expect(rest == total, "answer", f"{total} bytes of output data", rest)
    return f"{milliseconds:.1f} ms, on {devices(config)}"


def binary_size(tensor: Mapping[str, Any]) -> int | None:
    """Return how many bytes of an answer belong to an output; None when its data is in the JSON."""
    parameters = tensor.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    expect(
        size is None or (isinstance(size, int) and size >= 0),
        "output {}".format(tensor.get("name")),
        "a number as binary_data_size",
        size,
    )
    return size


# -- the report ------------------------------------------------------------------------------------


class Report:
    """Runs checks, prints a line for each, and knows whether one failed."""

    def __init__(self, as_json: bool, timeout: float) -> None:
        self.as_json = as_json
        self.timeout = timeout
        self.checks: list[dict[str, str]] = []

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check["status"] != "fail" for check in self.checks)

    def add(self, status: str, check: str, detail: str = "", next_step: str = "") -> None:
        """Add one line."""
        entry = {"check": check, "status": status}
        if detail:
            entry["detail"] = detail
        if next_step:
            entry["next_step"] = next_step
        self.checks.append(entry)
        if not self.as_json:
            word = {"ok": "ok  ", "fail": "FAIL", "note": "note"}[status]
            text = detail + ("; " + next_step if next_step else "")
            joint = ": " if status != "ok" else " "
            print("{} {}{}".format(word, check, joint + text if text else ""), flush=True)

    def run(self, name: str, check: Any, *arguments: Any) -> bool:
        """Run one check; return whether it was ok. UnreachableError and a deadline end the run."""
        try:
            detail = check(*arguments)
        except SkipCheck as skip:
            self.add("note", name, f"not checked: {skip}")
            return True
        except NoteCheck as note:
            self.add("note", name, str(note))
            return True
        except CheckError as failure:
            self.add("fail", name, failure.reason, failure.next_step)
            if isinstance(failure, UnreachableError):
                raise
            return False
        except DeadlineError:
            self.add(
                "fail",
                name,
                f"no answer within the {self.timeout:g} s for all checks",
                "give more time with --timeout, or look into the server's log for what it does",
            )
            raise
        self.add("ok", name, detail)
        return True


def run_checks(options: argparse.Namespace, report: Report) -> None:
    """Run every check that the options ask for."""
    server = Server(options.url, options.timeout)
    report.run("server live", check_live, server)

    index: list[dict[str, str]] = []

    def read_index() -> str:
        index.extend(repository_index(server))
        return "({} models)".format(len({entry["name"] for entry in index}))

    if options.model:
        # Only for the reasons in it: a server may not allow it.
        try:
            index = repository_index(server)
        except CheckError as failure:
            if isinstance(failure, UnreachableError):
                report.add("fail", "repository index", failure.reason, failure.next_step)
                raise
        names = list(dict.fromkeys(options.model))
        others = [
            entry["name"]
            for entry in index
            if entry["name"] not in names and should_be_ready(entry) and entry["state"] != "READY"
        ]
        report.run("server ready", check_ready, server, list(dict.fromkeys(others)))
    else:
        report.run("server ready", check_ready, server)
        if not report.run("repository index", read_index):
            report.add("note", "models", "not checked: name them with --model")
            return
        names = list(dict.fromkeys(e["name"] for e in index if should_be_ready(e)))
        if not names:
            report.add("note", "models", "none is loaded")
    for name in names:
        model = Model(name, [entry for entry in index if entry["name"] == name])
        shown = f"model {name}"
        if options.model_version is not None:
            shown += f" version {options.model_version}"
        ready = report.run(
            shown + " ready", check_model_ready, server, model, options.model_version
        )
        if ready and not options.no_infer:
            report.run(shown + " inference", check_inference, server, name, options.model_version)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="health_check.py",
        description=(__doc__ or "").split("\n\n")[0],
        epilog="Exit status: 0 all is well, 1 a check failed, 2 a wrong option.",
    )
    parser.add_argument(
        "--url", default="127.0.0.1:8000", help="the server's HTTP address; default: %(default)s"
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help="a model that has to be ready; may be repeated; default: all that are loaded. With "
        "it, other models do not count: a server that is not ready because of them is a note",
    )
    parser.add_argument("--model-version", metavar="V", help="the version of --model to check")
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds for all checks together; default: %(default)s",
    )
    parser.add_argument("--no-infer", action="store_true", help="send no inference request")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    options = parser.parse_args(arguments)
    if not 0 < options.timeout < 1e6:
        parser.error(f"--timeout: expected seconds above 0, got {options.timeout:g}")
    if options.model_version is not None and not options.model:
        parser.error("--model-version: expected --model with it")
    if not re.match(
        r"^(https?://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\])(:\d{1,5})?(/\S*)?$", options.url
    ):
        parser.error(f"--url: expected host:port, got {options.url!r}")
    return options


def on_alarm(*_: object) -> NoReturn:
    """End a check that trickles: a socket's timeout starts anew with every byte."""
    raise DeadlineError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and return the exit status."""
    options = parse_options(arguments)
    report = Report(options.json, options.timeout)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, options.timeout)
    try:
        run_checks(options, report)
    except UnreachableError:
        pass
    except DeadlineError:
        if report.ok:  # it fell between two checks
            report.add(
                "fail", "health check", f"its {options.timeout:g} s are over", "raise --timeout"
            )
    except KeyboardInterrupt:
        report.add("fail", "health check", "interrupted")
        return 130
    except Exception as error:
        report.add(
            "fail",
            "health check",
            one_line(f"unexpected {type(error).__name__}: {error}"),
            "report this",
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if options.json:
            result = {"url": options.url, "ok": report.ok, "checks": report.checks}
            print(json.dumps(result, indent=2), flush=True)
    return 0 if report.ok else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        # Whoever read the report has enough; there is no place left to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
