"""A Slurm cluster on this machine, for as long as the tests need it: two nodes with two pretended GPUs each.

Partitions: `cpu`, `gpu`, and `scavenge`, whose jobs make room for those of the others and are queued again. All of it
lies below one folder and is stopped by its process ids. `/etc/slurm` is used because a job step forgets where its
configuration is; a Slurm that is already configured there is left alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NODES = ("node1", "node2")
SYSTEM = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf", "cgroup.conf")
PREFIX = "datpo-slurm-"
PROGRAMS = ("slurmctld", "slurmd", "sinfo", "munged")
DATABASE = ("slurmdbd", "mariadbd", "mariadb-install-db")

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
SlurmctldPort={controller}
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill,UsePss
ReturnToService=2
SlurmdTimeout=10
KillWait=30
MinJobAge=600
SchedulerParameters=sched_interval=2,bf_interval=5,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{accounting}
{nodes}
PartitionName=DEFAULT Nodes=ALL DefMemPerCPU=500 State=UP
PartitionName=cpu Default=YES MaxTime=60 PriorityTier=2 PreemptMode=off
PartitionName=gpu MaxTime=60 PriorityTier=2 PreemptMode=off
PartitionName=scavenge MaxTime=60 PriorityTier=1 PreemptMode=requeue
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 SocketsPerBoard=1 CoresPerSocket=4 "
    "ThreadsPerCore=1 RealMemory=16000 Gres=gpu:pretended:2 State=UNKNOWN"
)
ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database}
AccountingStoragePass={root}/munge/socket
AccountingStorageTRES=gres/gpu"""
DBD = """\
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={database}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass=slurm
StorageLoc=accounting
PidFile={root}/run/slurmdbd.pid
LogFile={root}/log/slurmdbd.log
"""


def why_not(accounting: bool) -> str | None:
    """Why no cluster can be started here, if so."""
    # Programs of the system live where the path of a plain user does not look.
    missing = [name for name in (*PROGRAMS, *(DATABASE if accounting else ())) if not program(name)]
    if missing:
        packages = "slurmctld slurmd slurm-client munge" + (" slurmdbd mariadb-server" if accounting else "")
        return f"no Slurm to test against ({', '.join(missing)} not found): apt-get install {packages}"
    if os.geteuid() != 0:
        return "no Slurm to test against: its daemons are started by root only"
    if "SLURM_CONF" in os.environ:
        return f"a Slurm is configured here already (SLURM_CONF={os.environ['SLURM_CONF']}), and is left alone"
    foreign = [str(SYSTEM / name) for name in FILES if os.path.lexists(SYSTEM / name) and not ours(SYSTEM / name)]
    return f"a Slurm is configured here already ({', '.join(foreign)}), and is left alone" if foreign else None


def program(name: str) -> str | None:
    """Where a program is, on the path or where Debian keeps daemons."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def ours(file: Path) -> bool:
    """Whether a file of the system's folder is a link of these tests, of a run that was killed perhaps."""
    return file.is_symlink() and os.readlink(file).startswith(f"/tmp/{PREFIX}")


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Until something holds.

    Raises:
        TimeoutError: it does not.
    """
    deadline = time.time() + seconds
    while not condition():
        if time.time() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended but was not asked about does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class Cluster:
    """A running cluster."""

    root: Path
    accounting: bool

    def run(self, *command: str, timeout: float = 60) -> str:
        """What a Slurm command says."""
        words = [program(command[0]) or command[0], *command[1:]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}{done.stdout}"
        return done.stdout

    def jobs(self) -> dict[int, dict[str, str]]:
        """All that `scontrol` knows of each job."""
        found = {}
        for block in self.run("scontrol", "--oneliner", "show", "job").splitlines():
            values = dict(word.split("=", 1) for word in block.split() if "=" in word)
            if "JobId" in values:
                found[int(values["JobId"])] = values
        return found

    def job(self, comment: str) -> dict[str, str] | None:
        """The newest job of a rule."""
        of_rule = [values for values in self.jobs().values() if values.get("Comment", "").startswith(comment)]
        return of_rule[-1] if of_rule else None

    def take_all_gpus(self) -> None:
        """Something more urgent, for a moment."""
        words = ("--partition=gpu", f"--nodes={len(NODES)}", "--gpus-per-node=2", "--output=/dev/null", "--wrap=true")
        self.run("sbatch", *words)

    def daemon(self, name: str) -> int:
        """The process id of a daemon."""
        return int((self.root / f"run/{name}.pid").read_text())

    def start_node(self, name: str) -> None:
        self.run("slurmd", "-N", name)

    def idle(self) -> bool:
        said = self.run("sinfo", "--noheader", "--Node", "--partition", "cpu", "--states", "idle", "--format", "%N")
        return len(said.split()) == len(NODES)

    def clear(self) -> None:
        """No job is left, and both nodes are there for the next test."""
        subprocess.run(["scancel", "--user=root"], check=False, capture_output=True)
        subprocess.run(["scancel", "--user=root", "--signal=KILL", "--full"], check=False, capture_output=True)
        for name in NODES:
            pid = self.root / f"run/{name}.pid"
            if not pid.exists() or not alive(int(pid.read_text())):
                self.start_node(name)
        wait_for(lambda: not self.run("squeue", "--noheader").strip(), "the end of all jobs", 120)
        wait_for(self.idle, "idle nodes", 120)


@contextmanager
def cluster(root: Path, accounting: bool) -> Iterator[Cluster]:
    """Start a cluster below `root`, and stop it."""
    sweep()
    running = Cluster(root, accounting)
    try:
        configure(root, accounting)
        start(running)
        wait_for(running.idle, f"two idle nodes; see {root}/log", 90)
        yield running
        running.clear()
    finally:
        stop(root)


def configure(root: Path, accounting: bool) -> None:
    """Write the folder of a cluster, and show the system where it is."""
    for name in ("etc", "run", "log", "state", "spool/node1", "spool/node2", "gpus", "munge"):
        (root / name).mkdir(parents=True)
    root.chmod(0o755)
    key = root / "etc/munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    controller, database, sql, *ports = free_ports(3 + len(NODES))
    host = socket.gethostname().split(".")[0]
    names = {"root": root, "host": host, "controller": controller, "database": database, "sql": sql}
    nodes = "\n".join(NODE.format(name=name, port=port, **names) for name, port in zip(NODES, ports, strict=True))
    storage = ACCOUNTING.format(**names) if accounting else "AccountingStorageType=accounting_storage/none"
    (root / "etc/slurm.conf").write_text(CONFIGURATION.format(nodes=nodes, accounting=storage, **names))
    (root / "etc/cgroup.conf").write_text("CgroupAutomount=no\n")
    gres = []
    for node in NODES:
        for number in range(2):
            os.mknod(root / f"gpus/{node}-{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null
        gres.append(f"NodeName={node} Name=gpu Type=pretended File={root}/gpus/{node}-[0-1]\n")
    (root / "etc/gres.conf").write_text("".join(gres))
    if accounting:
        (root / "etc/slurmdbd.conf").write_text(DBD.format(**names))
        (root / "etc/slurmdbd.conf").chmod(0o600)
        (root / "sql_port").write_text(str(sql))
    SYSTEM.mkdir(exist_ok=True)
    for name in FILES:
        (SYSTEM / name).symlink_to(root / "etc" / name)


def start(cluster: Cluster) -> None:
    """The daemons, in the order in which they need each other."""
    root = cluster.root
    munge = {"key-file": "etc/munge.key", "socket": "munge/socket", "pid-file": "run/munged.pid"}
    munge |= {"log-file": "log/munged.log", "seed-file": "run/munged.seed"}
    cluster.run(
        "munged", "--force", "--num-threads=2", *(f"--{option}={root / file}" for option, file in munge.items())
    )
    if cluster.accounting:
        start_accounting(cluster)
    cluster.run("slurmctld", "-c")
    for name in NODES:
        cluster.start_node(name)


def start_accounting(cluster: Cluster) -> None:
    """MariaDB, slurmdbd, and one account, `tests`, with this user."""
    root = cluster.root
    sql = root / "sql"
    sql.mkdir()
    shutil.chown(sql, "mysql")
    cluster.run(
        *("mariadb-install-db", "--no-defaults", f"--datadir={sql}/data", "--user=mysql"),
        "--auth-root-authentication-method=normal",
    )
    log = root / "log/mariadb.log"
    log.touch()
    shutil.chown(log, "mysql")
    options = {"user": "mysql", "datadir": f"{sql}/data", "socket": f"{sql}/socket", "pid-file": f"{sql}/pid"}
    options |= {"bind-address": "127.0.0.1", "port": (root / "sql_port").read_text(), "log-error": str(log)}
    options |= {"innodb-buffer-pool-size": "64M", "innodb-lock-wait-timeout": "900"}
    subprocess.Popen(
        [program("mariadbd") or "mariadbd", "--no-defaults", *(f"--{name}={value}" for name, value in options.items())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(lambda: (sql / "socket").exists() and (sql / "pid").exists(), "MariaDB")
    shutil.copy(sql / "pid", root / "run/mariadbd.pid")
    ask = ("mariadb", "--no-defaults", "--user=root", f"--socket={sql}/socket", "--execute")
    cluster.run(*ask, "create database accounting; create user slurm identified by 'slurm'")
    cluster.run(*ask, "grant all on accounting.* to slurm; drop user if exists ''@localhost")
    os.environ["SLURM_CONF"] = str(root / "etc/slurm.conf")  # beside it slurmdbd looks for its own file
    try:
        cluster.run("slurmdbd")
    finally:
        del os.environ["SLURM_CONF"]
    wait_for(lambda: (root / "run/slurmdbd.pid").exists() and answers("sacctmgr", "-n", "show", "cluster"), "slurmdbd")
    for words in ("cluster tests", "account tests cluster=tests", "user root defaultaccount=tests"):
        cluster.run("sacctmgr", "--immediate", "add", *words.split())


def answers(*command: str) -> bool:
    """Whether a command works by now."""
    try:
        return subprocess.run(command, capture_output=True, timeout=5, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def stop(root: Path) -> None:
    """End the daemons of a cluster by their process ids, in the order of a shutdown, and forget its configuration."""
    for name in (*NODES, "slurmctld", "slurmdbd", "mariadbd", "munged"):
        file = root / f"run/{name}.pid"
        if file.exists() and (process := int(file.read_text())) and belongs(process, root):
            os.kill(process, signal.SIGTERM)
            try:
                wait_for(lambda process=process: not alive(process), name, 20)  # type: ignore[misc]
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
        file.unlink(missing_ok=True)
    for name in FILES:
        if ours(SYSTEM / name) and os.readlink(SYSTEM / name).startswith(f"{root}/"):
            (SYSTEM / name).unlink()


def belongs(process: int, root: Path) -> bool:
    """Whether a process id of an old file is still that of our daemon, which writes below `root`, and no newcomer's."""
    try:
        return any(os.readlink(file).startswith(f"{root}/") for file in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


def sweep() -> None:
    """Stop what a run of these tests left behind that was killed."""
    for root in {Path(os.readlink(SYSTEM / name)).parent.parent for name in FILES if ours(SYSTEM / name)}:
        stop(root)
        shutil.rmtree(root, ignore_errors=True)
