"""The command in the foreground: signals once, stops and goes on with its shell, ends as it ends, its output untouched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.run_terminal import CAP_SECONDS, LIKE_MACOS, Terminal, agent, under_us

SENT = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")
USUAL = (1 << 31) - 1
"""Signals by number, without the two that glibc keeps for itself."""
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks the kernel by /proc")
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def run(command, **options):
    return subprocess.run(
        under_us(*command), capture_output=True, check=False, timeout=CAP_SECONDS, cwd=ROOT, **options
    )


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def wait_for(condition):
    deadline = time.monotonic() + CAP_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_the_command_s(code):
    assert run(["sh", "-c", f"exit {code}"]).returncode == code


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT"])
def test_a_command_killed_by_a_signal_is_told_by_the_same_signal(name, tmp_path):
    ended = run(["sh", "-c", f"cd '{tmp_path}' && kill -{name[3:]} $$"])
    assert ended.returncode == -getattr(signal, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["there-is-no-such-program"], 127, "not found"),
        (["/there/is/none"], 127, "not found"),
        (["/"], 126, "Permission denied"),
        ([str(Path(__file__).with_name("__init__.py"))], 126, "Permission denied"),
    ],
)
def test_what_cannot_be_started_is_told_as_a_shell_would(command, code, words):
    program = (
        "import os, sys; from ctxscope.cli.foreground import *\n"
        "try:\n    Foreground().run(sys.argv[1:], os.environ)\n"
        "except CannotStartError as error: print(error); sys.exit(error.code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, check=False, cwd=ROOT, text=True
    )
    assert (ended.returncode, ended.stderr) == (code, "")
    assert words in ended.stdout
    assert command[0] in ended.stdout


def test_descriptors_are_the_command_s_own_and_nothing_is_added():
    given = bytes(range(256)) * 300
    ended = run(
        [sys.executable, "-c", "import os; os.write(2, b'\\x1b[2J'); os.write(1, os.read(0, 10**6))"], input=given
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == (given[: len(ended.stdout)], b"\x1b[2J", 0)
    assert ended.stdout


@needs_proc
def test_the_command_starts_with_the_signals_that_we_were_given():
    shown = run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]).stdout
    assert [int(line.split()[1], 16) & USUAL for line in shown.splitlines()] == [0, 0]


@needs_proc
def test_a_signal_that_was_ignored_stays_ignored():
    shell = f"trap '' HUP; {subprocess.list2cmdline([sys.executable])} -c \"$0\" grep ^SigIgn /proc/self/status"
    ended = subprocess.run(["sh", "-c", shell, under_us()[2]], capture_output=True, check=True, cwd=ROOT)
    assert int(ended.stdout.split()[1], 16) & USUAL == 1 << (signal.SIGHUP - 1)


@pytest.mark.parametrize("name", SENT)
def test_a_signal_sent_to_us_alone_reaches_the_command_once(name):
    with Terminal(under_us(*agent(*SENT))) as terminal:
        terminal.until(r"ready \d+")
        for n in range(1, 4):
            terminal.process.send_signal(getattr(signal, name))
            terminal.until(f"{name} {n}")
        terminal.send("quit\n")
        assert terminal.end() == 5
        assert f"counted {{'{name}': 3}}" in terminal.seen


@pytest.mark.parametrize(("key", "name"), [("\x03", "SIGINT"), ("\x1c", "SIGQUIT")])
def test_a_key_of_the_terminal_reaches_the_command_once(key, name):
    with Terminal(under_us(*agent(*SENT))) as terminal:
        terminal.until(r"ready \d+")
        for n in range(1, 6):
            terminal.send(key)
            terminal.until(f"{name} {n}")
        terminal.send("quit\n")
        assert terminal.end() == 5
        assert f"counted {{'{name}': 5}}" in terminal.seen


def test_where_nothing_tells_the_sender_keys_still_come_once_and_a_request_to_end_still_comes():
    program = [sys.executable, "-c", LIKE_MACOS + under_us()[2], *agent(*SENT)]
    with Terminal(program) as terminal:
        terminal.until(r"ready \d+")
        for n in range(1, 4):
            terminal.send("\x03")
            terminal.until(f"SIGINT {n}")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.until("SIGTERM 1")
        terminal.send("quit\n")
        assert terminal.end() == 5
        assert "counted {'SIGINT': 3, 'SIGTERM': 1}" in terminal.seen


def test_a_terminal_that_is_closed_is_told_to_the_command_though_the_kernel_tells_its_leader_alone(tmp_path):
    note = tmp_path / "note"
    waits = (
        "import os, signal, sys\n"
        "def note(*_): open(sys.argv[1], 'a').write('HUP '); os._exit(0)\n"
        "signal.signal(signal.SIGHUP, note); print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    with Terminal(under_us(sys.executable, "-c", waits, str(note))) as terminal:
        terminal.until("ready\r\n")  # the kernel passes a line on in pieces: closed in between, the write would fail
        os.close(terminal.master)
        terminal.master = os.open(os.devnull, os.O_RDONLY)
        terminal.process.wait(CAP_SECONDS)
    assert note.read_text(encoding="utf-8") == "HUP "


def test_a_command_that_a_key_kills_is_told_so():
    with Terminal(under_us(*agent("SIGUSR1"))) as terminal:
        terminal.until(r"ready \d+")
        terminal.send("\x1c")
        assert terminal.end() == -signal.SIGQUIT


def test_what_the_command_sends_to_its_own_group_comes_once():
    with Terminal(under_us(*agent("SIGUSR1"))) as terminal:
        terminal.until(r"ready \d+")
        terminal.send("group\n")
        terminal.until("SIGUSR1 1")
        terminal.send("word\n")
        terminal.until("got word")
        terminal.send("quit\n")
        assert terminal.end() == 5
        assert "counted {'SIGUSR1': 1}" in terminal.seen


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="who sent a signal is not told here")
def test_what_the_command_sent_to_its_group_and_nobody_took_ends_with_it():
    program = (
        "import os, signal; from ctxscope.cli.foreground import *\n"
        "Foreground._pass_on = lambda self: signal.sigwait({signal.SIGWINCH})\n"
        "with Foreground() as foreground:\n"
        "    ending = foreground.run(['sh', '-c', 'trap \"\" USR1; kill -USR1 0; exit 5'], os.environ)\n"
        "print(ending.code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, cwd=ROOT, start_new_session=True
    )
    assert (ended.returncode, ended.stdout) == (0, b"5\n")


def test_a_ctrl_c_before_the_command_has_started_ends_us_instead():
    program = (
        "import os, signal, sys; from ctxscope.cli.foreground import *\n"
        "with Foreground() as foreground:\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "    try: foreground.run(['echo', 'started'], os.environ)\n"
        "    except KeyboardInterrupt: print('interrupted')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT)
    assert ended.stdout == b"interrupted\n"


def test_a_ctrl_c_as_the_command_is_ending_was_the_command_s():
    program = (
        "import os, signal, sys; from ctxscope.cli.foreground import *\n"
        "with Foreground() as foreground:\n    ending = foreground.run(['sh', '-c', 'exit 6'], os.environ)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: sys.exit(ending.code)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (6, b"")


# --- with a shell ---


@pytest.fixture
def shell(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text(agent()[2], encoding="utf-8")
    runner = tmp_path / "runner.py"
    runner.write_text(under_us()[2], encoding="utf-8")
    command = ["bash", "--norc", "--noprofile", "-i"]
    with Terminal(command, PS1="shell> ", PYTHONPATH=str(ROOT), PS0="") as terminal:
        terminal.until("shell> ")
        terminal.command = f"{sys.executable} {runner} {sys.executable} {file} SIGCONT"
        yield terminal


@needs_bash
def test_ctrl_z_gives_the_shell_its_prompt_and_fg_goes_on(shell):
    shell.send(f"{shell.command}\n")
    shell.until(r"ready \d+")
    for word in ("pear", "plum"):
        shell.send("\x1a")
        shell.until("Stopped")
        shell.until("shell> ")
        shell.send("echo the $((6*7)) prompt\n")
        shell.until("the 42 prompt")
        shell.send("fg\n")
        shell.until("runner.py")
        shell.send(f"{word}\n")
        shell.until(f"got {word}")
    shell.send("quit\n")
    shell.until("counted {'SIGCONT': 2}")
    shell.until("shell> ")
    shell.send("echo ended with $?\n")
    shell.until("ended with 5")


@needs_bash
@needs_proc
@pytest.mark.parametrize("name", ["SIGSTOP", "SIGTSTP"])
def test_a_stop_of_the_command_alone_stops_us_and_fg_continues_both(shell, name):
    shell.send(f"{shell.command}\n")
    pid = int(shell.until(r"ready (\d+)")[1])
    os.kill(pid, getattr(signal, name))
    shell.until("Stopped")
    shell.until("shell> ")
    shell.send("fg\n")
    shell.until("runner.py")
    shell.send("fig\n")
    shell.until("got fig")
    shell.send("quit\n")
    shell.until("counted")


@needs_bash
@needs_proc
def test_a_stop_sent_to_us_alone_stops_both(shell):
    shell.send(f"{shell.command}\n")
    pid = int(shell.until(r"ready (\d+)")[1])
    ours = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    os.kill(ours, signal.SIGTSTP)
    shell.until("Stopped")
    shell.until("shell> ")
    assert state(pid) == "T"
    os.kill(ours, signal.SIGCONT)
    shell.until("SIGCONT 1")
    os.kill(ours, signal.SIGTERM)
    wait_for(lambda: not Path(f"/proc/{ours}").exists())
    shell.send("echo\n")
    shell.until("Terminated")


@needs_proc
def test_without_a_terminal_a_stopped_command_does_not_stop_us():
    above = "import subprocess, sys; sys.exit(subprocess.Popen(sys.argv[1:], process_group=0).wait())"
    command = [sys.executable, "-c", above, *under_us(*agent())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
    ) as ours:
        pid = int(ours.stdout.readline().split()[1])
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: state(pid) == "T")
        os.kill(pid, signal.SIGCONT)
        out, _ = ours.communicate(b"quit\n", CAP_SECONDS)
    assert (out, ours.returncode) == (b"got quit\ncounted {}\n", 5)
