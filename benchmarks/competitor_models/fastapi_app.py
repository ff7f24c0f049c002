# SPDX-License-Identifier: Apache-2.0
"""The network behind FastAPI: the bytes of a row in, the bytes of its answer out.

There is no JSON and no validation to pay for. `create_app` answers each request by itself,
`create_batching_app` puts those that wait together. Both call JAX on the event loop: a call takes
some ten microseconds, less than handing it to another thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

from benchmarks.competitor_models.compiled import Array, CompiledMlp
from benchmarks.competitor_models.weights import MAX_BATCH, SIZES

_BINARY = "application/octet-stream"


def _row(body: bytes) -> Array:
    return np.frombuffer(body, np.float32).reshape(-1, SIZES[0])


def create_app() -> FastAPI:
    """One call of the model for each request."""
    run = CompiledMlp()
    app = FastAPI()

    @app.post("/infer")
    async def infer(request: Request) -> Response:
        answer = run([_row(await request.body())])
        return Response(answer[:1].tobytes(), media_type=_BINARY)

    return app


class Batcher:
    """Puts requests that wait at the same time into one call.

    It does not wait for more to come: while a batch runs, others queue, as in Triton's own batcher
    without a delay. One turn of the event loop lets every request that has arrived queue first.
    """

    def __init__(self, run: CompiledMlp) -> None:
        self._run = run
        self._waiting: list[tuple[Array, asyncio.Future[bytes]]] = []
        self._wake = asyncio.Event()

    async def infer(self, row: Array) -> bytes:
        """Return the answer to one row."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, answer))
        self._wake.set()
        return await answer

    async def serve(self) -> None:
        """Run batches until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            if not self._waiting:
                self._wake.clear()
            try:
                outputs = self._run([row for row, _ in batch])
            except Exception as error:
                for _, answer in batch:
                    answer.set_exception(error)
                continue
            for (_, answer), output in zip(batch, outputs, strict=False):
                if not answer.done():
                    answer.set_result(output.tobytes())


def create_batching_app() -> FastAPI:
    """One call of the model for all requests that wait."""
    batcher = Batcher(CompiledMlp())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        serving: asyncio.Task[Any] = asyncio.create_task(batcher.serve())
        yield
        serving.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.post("/infer")
    async def infer(request: Request) -> Response:
        return Response(await batcher.infer(_row(await request.body())), media_type=_BINARY)

    return app
