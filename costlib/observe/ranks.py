"""How are several ranks run and heard? Processes on the loopback device that nothing outlives: no process, port or file."""

import json
import os
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from costlib.observe import need

LIMIT = 240  # seconds for one run, starting the processes included
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
KINDS = {
    "_allgather_base_": "all-gather",
    "allgather_": "all-gather",
    "_reduce_scatter_base_": "reduce-scatter",
    "allreduce_": "all-reduce",
    "broadcast_": "broadcast",
}


class RunFailed(RuntimeError):
    """A rank failed, took too long or saw something else than its peers; one sentence."""


def run(task, world: int, *args, limit: float = LIMIT) -> list:
    """What task(rank, world, *args) gives back on each of `world` gloo processes, in the order of ranks."""
    need()
    from torch import multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        end = time.monotonic() + limit
        ranks = multiprocessing.spawn(_rank, (task, world, folder, limit, args), nprocs=world, join=False)
        try:
            while not ranks.join(timeout=max(0, end - time.monotonic())):
                if time.monotonic() >= end:
                    raise RunFailed(f"{task.__name__} on {world} ranks was not done after {limit} s; they were ended")
        except (multiprocessing.ProcessExitedException, multiprocessing.ProcessRaisedException) as failure:
            told = sorted(Path(folder).glob("*.failed"), key=lambda path: path.stat().st_mtime_ns)
            last = Path(folder, f"{failure.error_index}.stderr").read_text(errors="replace").strip().splitlines()[-1:]
            why = f"rank {failure.error_index}: {failure}; {' '.join(last) or 'it said nothing'}"
            why = told[0].read_text(encoding="utf-8") if told else why
            raise RunFailed(f"{task.__name__} on {world} ranks failed: {why}") from None
        finally:
            for process in ranks.processes:
                process.kill()
                process.join()
        return [json.loads(Path(folder, f"{rank}.json").read_text(encoding="utf-8")) for rank in range(world)]


def _rank(rank, task, world, folder, limit, args):
    os.dup2(os.open(Path(folder, f"{rank}.stderr"), os.O_CREAT | os.O_WRONLY), 2)  # the framework's warnings
    try:
        torch, _ = need()
        import torch.distributed as dist

        os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
        torch.set_num_threads(1)
        store, wait = f"file://{folder}/store", timedelta(seconds=limit)
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world, timeout=wait)
        Path(folder, f"{rank}.json").write_text(json.dumps(task(rank, world, *args)), encoding="utf-8")
        dist.barrier()  # a peer may still be reading what this rank sent
    except Exception as failure:
        first = str(failure).strip().partition("\n")[0]
        Path(folder, f"{rank}.failed").write_text(f"rank {rank}: {type(failure).__name__}: {first}", encoding="utf-8")
        os._exit(1)
    # Threads of gloo and autograd may outlast Python's own end and then abort the process: it ends before that.
    os._exit(0)


def calls():
    """A context whose `rows` are [kind, input bytes, output bytes] of every collective called in it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Calls(TorchDispatchMode):
        rows = ()

        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator.namespace == "c10d":
                name = str(operator).split(".")[1]
                output, given = _bytes(args[0]), _bytes(args[1])  # in this order; in place, the first is both
                self.rows += ([KINDS.get(name, name), given or output, output],)
            return operator(*args, **(kwargs or {}))

    return Calls()


def _bytes(value) -> int:
    return sum(map(_bytes, value)) if isinstance(value, (list, tuple)) else getattr(value, "nbytes", 0)
