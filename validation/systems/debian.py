#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the two commands of the README work on a fresh Debian or Ubuntu? Makes a root of each release with debootstrap,
clones the committed tree into it, runs `./quickstart` and `./check` there as root, prints times and counts, and deletes
the root.

    validation/systems/debian.py bookworm trixie noble [--mirror URL] [--keyring FILE] [--only quickstart]
                                 [--arguments WORDS] [--copy FILE]... [--pass NAME]... [--keep]

A root has mounts, processes and a host name of its own, /dev/shm, /dev/fuse and the machine's cgroups; its network is
the machine's. --copy takes a file of this machine along that the network needs: /etc/pip.conf, or a certificate below
/usr/local/share/ca-certificates, which the root then trusts. --pass does so with an environment variable, and
--arguments go to ./check. Needs root, the Debian package debootstrap and some 6 GB a release. Exit status 4 when a
command fails. Logs stay in --logs. A root that --keep left is used again, with the tree as it was cloned then. Releases
of Ubuntu need their archive's key: --keyring, of the package ubuntu-keyring."""

import argparse
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UBUNTU = ("jammy", "noble", "questing")
UBUNTU_MIRROR = "http://archive.ubuntu.com/ubuntu"
COMMANDS = {"quickstart": "./quickstart", "check": "./check"}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "fuse")
ENTER = """
set -e
root=$1; shift
mount --bind "$root" "$root"  # else / is no mount point there, and namespaces inside can not change it
hostname "$(basename "$root")"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for device in DEVICES; do
  [ -e "/dev/$device" ] || continue
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
exec chroot "$root" "$@"
""".replace("DEVICES", " ".join(DEVICES))


@dataclasses.dataclass
class Outcome:
    release: str
    command: str
    seconds: float
    status: int
    output: str


def make_root(root: Path, release: str, given: argparse.Namespace, log: Path) -> None:
    """A minimal system with a clone of the tree in /root/iocast. @raises subprocess.CalledProcessError"""
    mirror, more, script = given.mirror, [], []
    if release in UBUNTU:
        mirror = mirror or UBUNTU_MIRROR
        more = ["--components=main,universe", f"--keyring={given.keyring}"]
        script = ["/usr/share/debootstrap/scripts/gutsy"]  # all of Ubuntu's are links to this one
    with log.open("ab") as out:
        command = ["debootstrap", "--variant=minbase", "--include=ca-certificates,git", *more, release, str(root)]
        command += [mirror, *script] if mirror else []
        subprocess.run(command, stdout=out, stderr=out, check=True)
        for file in given.copy:
            target = root / file.resolve().relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            if file.is_symlink():
                link = root / file.relative_to("/")
                link.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, link)
        subprocess.run(["chroot", str(root), "update-ca-certificates"], stdout=out, stderr=out, check=True)
        with (root / "etc" / "hosts").open("a") as hosts:
            hosts.write(f"127.0.0.1 localhost\n127.0.1.1 {root.name}\n")
        subprocess.run(
            ["git", "clone", "--quiet", "--no-local", str(ROOT), str(root / "root" / "iocast")],
            stdout=out,
            stderr=out,
            check=True,
        )


def enter(root: Path, command: str, environment: dict[str, str], log: Path) -> int:
    """Runs a command of the shell in the root, in namespaces of its own. @returns its exit status"""
    kept = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **environment}
    inside = [
        "unshare",
        "--mount",
        "--pid",
        "--uts",
        "--ipc",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        ENTER,
        "sh",
        str(root),
        "sh",
        "-c",
        f"cd /root/iocast && {command}",
    ]
    with log.open("ab") as out:
        return subprocess.run(
            inside, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=kept, check=False
        ).returncode


def last_words(log: Path, command: str) -> str:
    """Tests passed and failed, or what quickstart ended with."""
    text = log.read_text(errors="replace")
    found = (
        re.findall(r"=+ (.*(?:passed|failed|error).*) in [\d.]+s.*=+", text)
        if command == "check"
        else re.findall(r"^(Done in \d+ s)", text, re.MULTILINE)
    )
    return found[-1] if found else (text.strip().splitlines() or ["it printed nothing"])[-1][:120]


def try_release(release: str, given: argparse.Namespace) -> list[Outcome]:
    root, log = given.place / f"iocast-{release}", given.logs / f"{release}.log"
    environment = {name: os.environ[name] for name in given.passed if name in os.environ}
    outcomes = []
    try:
        began = time.monotonic()
        if root.exists():
            print(f"{release}: {root} is used again", flush=True)
        else:
            make_root(root, release, given, log)
            print(f"{release}: root made in {time.monotonic() - began:.0f} s", flush=True)
        for name in given.only:
            began = time.monotonic()
            command = COMMANDS[name]
            if name == "check":
                command += f" {given.arguments}"
            status = enter(root, command, environment, log := given.logs / f"{release}-{name}.log")
            outcomes.append(Outcome(release, name, time.monotonic() - began, status, last_words(log, name)))
    except subprocess.CalledProcessError as error:
        outcomes.append(Outcome(release, "debootstrap", time.monotonic() - began, error.returncode, f"see {log}"))
    finally:
        if not given.keep:
            shutil.rmtree(root, ignore_errors=True)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="+", metavar="RELEASE", help="bookworm, trixie, ...")
    parser.add_argument("--mirror", default="", help="of the packages; debootstrap's own, or Ubuntu's, by default")
    parser.add_argument(
        "--keyring",
        type=Path,
        default=Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
        metavar="FILE",
        help="keys of Ubuntu's archive",
    )
    parser.add_argument("--only", action="append", choices=COMMANDS, help="this command; may be repeated")
    parser.add_argument(
        "--copy",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="a file of this machine that the root has too",
    )
    parser.add_argument(
        "--pass",
        dest="passed",
        action="append",
        default=[],
        metavar="NAME",
        help="an environment variable that the commands have too",
    )
    parser.add_argument("--arguments", default="", metavar="WORDS", help="of ./check: --arguments='--without slurm'")
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"), help="where roots are made")
    parser.add_argument("--logs", type=Path, default=Path("build/systems"), help="directory of the logs")
    parser.add_argument("--keep", action="store_true", help="leave the roots")
    given = parser.parse_args()
    given.only = given.only or list(COMMANDS)
    given.logs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # a root's processes end with this one
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("debian.py needs root and the Debian package debootstrap.")
    if set(UBUNTU) & set(given.releases) and not given.keyring.is_file():
        sys.exit(f"There are no keys of Ubuntu's archive at {given.keyring}; name them with --keyring.")
    outcomes = [outcome for release in given.releases for outcome in try_release(release, given)]
    print(f"{'release':<12}{'command':<12}{'seconds':>8}  status")
    for one in outcomes:
        print(f"{one.release:<12}{one.command:<12}{one.seconds:>8.0f}  {one.status}  {one.output}")
    sys.exit(4 if any(one.status for one in outcomes) else 0)


if __name__ == "__main__":
    main()
