"""Run as a program of its own: shuts itself in, then runs another program's source in there.

``python -I -S -B confine.py <JSON of a Cell>``; nothing of the harness is imported, so that nothing of it is in there.
Four processes share the work: this one makes the namespaces and waits; where it is root a child of it writes the map
of users; its child is process 1 of the new pid namespace, builds the file system and collects what ends; its child
gives up every right and becomes the program. What went wrong before that, and how the program ended, is said on
standard error, which the program has not: lines ``refused: <why>`` and ``ended: <exit status or -signal>``.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import stat
import sys
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_RELATIME = 1 << 10, 1 << 11, 1 << 21
MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
"""The system call's number; libc has no function for it."""

INSIDE_ID = 1000
"""User and group of the program inside; never 0, which programs treat as something special."""
NOBODY = 65534
"""Who that is outside, where this runs as root: nobody, so that limits by user hold and root's files are closed."""
WORK = "/work"
DEVICES = ("null", "zero", "random", "urandom")
REFUSED = 77
"""Exit status where the kernel did not allow to be shut in; the program was not started."""

_libc = ctypes.CDLL(None, use_errno=True)


class Refusal(Exception):
    """The kernel did not do what shutting in needs."""


def call(name: str, *arguments: object) -> None:
    """One function of libc; Refusal where it does not return 0."""
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise Refusal(f"{name}: {errno.errorcode.get(number, number)}, {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2), with the place in what it refuses."""
    encoded = None if kind is None else kind.encode()
    try:
        call("mount", source.encode(), target.encode(), encoded, ctypes.c_ulong(flags), options.encode() or None)
    except Refusal as error:
        raise Refusal(f"{error} ({kind or 'bind'} on {target})") from error


def main() -> None:
    """Reads the cell from the command line and ends as the program in it ended."""
    cell = json.loads(sys.argv[1])
    source = Path(cell["program"]).read_text(encoding="utf-8")
    if not cell["namespaces"]:
        os.chdir(cell["root"])
        limit(cell["limits"])
        become(source, cell)
    try:
        enter_namespaces()
        started, told = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(started)
            be_process_one(cell, source, told)
        os.close(told)
        if os.read(started, 1) != b"+":
            os.waitpid(first, 0)
            sys.exit(REFUSED)
    except (Refusal, OSError) as error:
        refuse(error)
    os.waitpid(first, 0)


def refuse(error: Exception) -> NoReturn:
    """Says why, and ends."""
    os.write(2, f"refused: {error}\n".encode())
    os._exit(REFUSED)


# -- namespaces --------------------------------------------------------------------------------------------------------


def enter_namespaces() -> None:
    """Moves this process into namespaces of its own; children of it into a pid namespace."""
    uid, gid = os.geteuid(), os.getegid()
    apart = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    if uid == 0:
        map_from_outside(apart)
        return
    call("unshare", apart)
    write_maps("self", f"{INSIDE_ID} {uid} 1\n", f"{INSIDE_ID} {gid} 1\n")


def write_maps(process: str, users: str, groups: str) -> None:
    """The user namespace's maps of a process; groups cannot be left afterwards."""
    folder = Path("/proc") / process
    (folder / "setgroups").write_text("deny")
    (folder / "uid_map").write_text(users)
    (folder / "gid_map").write_text(groups)


def map_from_outside(apart: int) -> None:
    """Root's way: a map of two users can only be written by a process that stayed outside."""
    entered, enter = os.pipe()
    mapped, map_done = os.pipe()
    parent = str(os.getpid())
    helper = os.fork()
    if helper == 0:
        os.close(enter)
        if os.read(entered, 1) != b"+":
            os._exit(0)
        two = f"0 0 1\n{INSIDE_ID} {NOBODY} 1\n"
        try:
            write_maps(parent, two, two)
        except OSError as error:
            os.write(map_done, str(error).encode())
            os._exit(0)
        os.write(map_done, b"+")
        os._exit(0)
    os.close(map_done)
    call("unshare", apart)
    os.write(enter, b"+")
    said = os.read(mapped, 400)
    os.waitpid(helper, 0)
    for end in (entered, enter, mapped):
        os.close(end)
    if said != b"+":
        raise Refusal(f"the map of users: {said.decode()}")


# -- process 1 ---------------------------------------------------------------------------------------------------------


def be_process_one(cell: dict[str, Any], source: str, told: int) -> NoReturn:
    """Builds the file system, starts the program, waits for it; when this ends the kernel ends all that is left."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        forbid_more_namespaces()
        build_root(cell)
        program = os.fork()
    except (Refusal, OSError) as error:
        refuse(error)
    if program == 0:
        try:
            limit(cell["limits"])
            give_up_rights()
        except (Refusal, OSError, ValueError) as error:
            refuse(error)
        os.write(told, b"+")
        os.close(told)
        os.chdir(WORK)
        become(source, cell)
    os.close(told)
    os.close(0)
    os.close(1)
    while True:
        pid, status = os.wait()
        if pid == program:
            os.write(2, f"ended: {os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)


def forbid_more_namespaces() -> None:
    """No user namespace below this one: what the kernel allows inside one is the larger part of its attack surface."""
    try:
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    except OSError:
        return  # Read-only in some containers; rights were given up all the same.


def build_root(cell: dict[str, Any]) -> None:
    """A root of its own in memory: what Python needs, read-only; a small folder to write in; nothing else."""
    root = cell["root"]
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for path in cell["visible"]:
        show(root, path)
    for name in DEVICES:
        show(root, f"/dev/{name}")
    lock(root)
    for path in cell["hidden"]:
        if os.path.isdir(root + path):  # noqa: PTH112 - a Path would lose the root: the second part is absolute
            mount("tmpfs", root + path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=000,size=4k")
    show_processes(root)
    os.mkdir(root + WORK)  # noqa: PTH102
    options = f"mode=700,uid={INSIDE_ID},gid={INSIDE_ID},size={cell['folder_bytes']},nr_inodes=4096"
    mount("tmpfs", root + WORK, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)
    os.chdir(root)
    if os.uname().machine not in PIVOT_ROOT:
        raise Refusal(f"pivot_root on {os.uname().machine}: unknown")
    call("syscall", PIVOT_ROOT[os.uname().machine], b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")
    mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def show(root: str, path: str) -> None:
    """One file, folder or link of outside at the same place inside; nothing where there is none."""
    target = Path(root + path)
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if os.path.lexists(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        target.symlink_to(os.readlink(path))  # noqa: PTH115
        return
    if stat.S_ISDIR(mode):
        target.mkdir()
    else:
        target.touch()
    mount(path, str(target), None, MS_BIND | MS_REC)


def show_processes(root: str) -> None:
    """The processes of the new pid namespace; no /proc at all where a container forbids to mount one."""
    os.mkdir(f"{root}/proc", 0o555)  # noqa: PTH102
    try:
        mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    except Refusal:
        return


def lock(root: str) -> None:
    """Makes all that is shown read-only, with what is mounted below it."""
    kept = {"nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC, "relatime": MS_RELATIME}
    kept |= {"noatime": MS_NOATIME, "nodiratime": MS_NODIRATIME}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        place = fields[4].encode().decode("unicode_escape")
        if not place.startswith(root + "/"):
            continue
        # The kernel refuses to drop a flag that the mount had outside.
        had = sum(kept.get(option, 0) for option in fields[5].split(","))
        device = MS_NODEV if not place.startswith(f"{root}/dev/") else 0
        mount("none", place, None, had | device | MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)


# -- the program -------------------------------------------------------------------------------------------------------


def limit(limits: dict[str, int]) -> None:
    """Sets resource limits by the names of the module ``resource``, for good."""
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def give_up_rights() -> None:
    """Becomes the user inside, without capabilities, and without a way to any."""
    for capability in range(LAST_CAPABILITY + 1):
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # Refused for numbers that this kernel does not know.
    if os.geteuid() != INSIDE_ID:
        os.setresgid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
        os.setresuid(INSIDE_ID, INSIDE_ID, INSIDE_ID)
    head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    call("capset", ctypes.byref(head), ctypes.byref((ctypes.c_uint32 * 6)()))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Giving up rights takes this away again, and the judge kills by ending the parent.
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def become(source: str, cell: dict[str, Any]) -> NoReturn:
    """Runs the program in this process, its name and nothing else of this one's in its globals."""
    for path in cell["modules"]:
        sys.path.append(path)
    sys.argv = [cell["program"]]
    exec(compile(source, "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - this is what it is for
    sys.exit(0)


if __name__ == "__main__":
    main()
