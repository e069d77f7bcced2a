"""Real processes: a failure is one sentence, and a run leaves nothing behind. `make observe` compares the bundles."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from costlib import ownership
from costlib.fixtures import TOY_TIED
from costlib.observe import distributed, models, ranks, sharding

PROC = Path("/proc/self/fd")
linux = pytest.mark.skipif(not PROC.exists(), reason="open files are read from /proc")


def sockets():
    links = (os.readlink(path) for path in PROC.iterdir() if path.exists())
    return {link for link in links if link.startswith("socket:")}


def listening(rank, world):
    """Addresses that this rank listens on, in the kernel's notation."""
    mine = {re.search(r"\d+", link).group() for link in sockets()}
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/self/net/{kind}").read_text().splitlines()[1:]]
    return sorted({row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in mine})


def two_fail(rank, world):
    if rank == 1:
        raise ValueError("no such tensor\nand a second line")
    import torch.distributed as dist

    dist.barrier()


def one_dies(rank, world):
    if rank == 1:
        os._exit(3)
    time.sleep(600)


def sleeps(rank, world):
    time.sleep(600)


def test_a_failing_rank_fails_the_observer_with_a_sentence():
    with pytest.raises(ranks.RunFailed) as failure:
        ranks.run(two_fail, 2)
    assert str(failure.value) == "two_fail on 2 ranks failed: rank 1: ValueError: no such tensor"


def test_a_rank_that_dies_is_no_answer():
    with pytest.raises(ranks.RunFailed, match="one_dies on 2 ranks failed: rank 1: .* exit code 3; it said nothing"):
        ranks.run(one_dies, 2)


def test_a_run_that_takes_too_long_is_ended(monkeypatch):
    from torch import multiprocessing

    started, spawn = [], multiprocessing.spawn
    monkeypatch.setattr(multiprocessing, "spawn", lambda *a, **k: started.append(spawn(*a, **k)) or started[0])
    with pytest.raises(ranks.RunFailed, match="sleeps on 2 ranks was not done after 2 s; they were ended"):
        ranks.run(sleeps, 2, limit=2)
    assert [process.exitcode for process in started[0].processes] == [-9, -9]


@linux
def test_ranks_listen_on_the_loopback_device_only():
    assert ranks.run(listening, 2) == [["0100007F"], ["0100007F"]]  # 127.0.0.1


@linux
@pytest.mark.parametrize("task, answer", [("elementary", "'refused': 2"), ("trained", "missing 1 required")])
def test_a_run_leaves_no_process_no_port_and_no_file_even_if_it_fails(task, answer, tmp_path):
    before = sockets()
    code = (
        "from costlib.observe import ranks, sharding\n"
        f"try: print(ranks.run(sharding.{task}, 2))\n"
        "except ranks.RunFailed as failure: print(failure)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    said, _ = run.communicate(timeout=200)
    assert run.returncode == 0 and answer in said
    for _ in range(50):  # Python's own helper of spawned processes ends when its pipe closes
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        raise AssertionError("a process of the run is still there")
    assert list(tmp_path.iterdir()) == [] and sockets() == before


def test_ranks_that_disagree_are_no_observation(monkeypatch):
    seen = [{"all-reduce fp32": [240, 240], "refused": 2}, {"all-reduce fp32": [240, 244], "refused": 2}]
    monkeypatch.setattr(ranks, "run", lambda *args: seen)
    with pytest.raises(ranks.RunFailed, match="saw different things"):
        distributed.collectives(2)


@pytest.fixture
def fake_pair():
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    yield
    dist.destroy_process_group()


def test_a_fake_group_is_not_made_beside_another(fake_pair):
    with pytest.raises(ranks.RunFailed, match="a process group is in use"):
        sharding.untrained(TOY_TIED, 2)


def test_a_fake_group_is_gone_afterwards():
    import torch.distributed as dist

    hook = sys.excepthook
    sharding.untrained(TOY_TIED, 2)
    assert not dist.is_initialized() and sys.excepthook is hook


@pytest.mark.parametrize("root, fewer", [(None, 1), (False, 1), (True, 0)])
def test_a_root_that_is_freed_is_gathered_as_often_as_the_ledger_says(fake_pair, root, fewer):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    model = models.build(TOY_TIED, dtype="fp32", device="cpu")
    for block in model.model.layers:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=root)
    with ranks.calls() as called:
        model(input_ids=models.tokens(2, 5, "cpu")).logits.sum().backward()
    events = [action for action, _ in ownership.fsdp_events(3, True)]
    assert sum(row[0] == "all-gather" for row in called.rows) == events.count("gather") - fewer == 6 - fewer
    assert sum(row[0] == "reduce-scatter" for row in called.rows) == events.count("reduce-scatter") == 3


def test_the_elementary_collectives_give_the_right_values_or_fail(fake_pair):
    with pytest.raises(ranks.RunFailed, match="gave wrong ones"):  # nobody else takes part in a fake group
        sharding.elementary(0, 2)
