"""Which doors of the kernel does no exercise need? Those that get round the sandbox's limits, shut by a seccomp filter.

Memory in System V segments outlives the process that is limited, a namespace of its own gives a process new rights to
try, and the rest (tracing, keys, io_uring, ...) has let programs out of sandboxes before. A call of these fails with
EPERM; clone3, whose flags no filter sees, with ENOSYS, upon which the C library takes clone. bubblewrap loads the filter.
Numbers are from Linux's tables of system calls; on other processors there is no filter.
"""

import errno
import os
import platform
import struct

ARCHITECTURES = {  # AUDIT_ARCH_* of linux/audit.h, and the numbers
    "x86_64": (0xC000003E, {
        "shmget": 29, "semget": 64, "msgget": 68, "ptrace": 101, "mount": 165, "add_key": 248, "request_key": 249, "keyctl": 250,
        "unshare": 272, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425,
        "clone": 56, "clone3": 435}),
    "aarch64": (0xC00000B7, {
        "mount": 40, "unshare": 97, "ptrace": 117, "msgget": 186, "semget": 190, "shmget": 194, "add_key": 217, "request_key": 218,
        "keyctl": 219, "perf_event_open": 241, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "userfaultfd": 282, "io_uring_setup": 425,
        "clone": 220, "clone3": 435}),
}  # fmt: skip
NAMESPACES = 0x7E020000  # CLONE_NEW*, the flags of clone that make one
X32 = 0x40000000  # x86_64's second table of numbers starts here
LOAD, EQUAL, AT_LEAST, ANY_OF, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # of linux/bpf_common.h: LD|W|ABS, JMP|JEQ|K, JGE, JSET, RET|K
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16  # where they stand in struct seccomp_data
ALLOW, ERROR = 0x7FFF0000, 0x00050000


def program(machine: str = platform.machine()) -> bytes | None:
    """The filter as the kernel reads it, an array of struct sock_filter; None for a processor not listed."""
    if machine not in ARCHITECTURES:
        return None
    arch, numbers = ARCHITECTURES[machine]
    denied, steps = ERROR | errno.EPERM, []

    def where(test, value, then):
        """Return `then` where the test holds."""
        steps.extend([(test, 0, 1, value), (RETURN, 0, 0, then)])

    steps += [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, arch), (RETURN, 0, 0, denied), (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":
        where(AT_LEAST, X32, denied)
    for name, number in numbers.items():
        if name not in ("clone", "clone3"):
            where(EQUAL, number, denied)
    where(EQUAL, numbers["clone3"], ERROR | errno.ENOSYS)
    steps += [(EQUAL, 1, 0, numbers["clone"]), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, FIRST_ARGUMENT)]
    where(ANY_OF, NAMESPACES, denied)
    steps += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def opened() -> int | None:
    """A descriptor from which the filter can be read once; None where there is none."""
    text = program()
    if text is None:
        return None
    reads, writes = os.pipe()
    os.write(writes, text)
    os.close(writes)
    return reads
