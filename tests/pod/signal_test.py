# tests/pod/signal_test.py - no signal is lost: many arrive at once, and each must be handled.
"""usage: signal_test.py CORDON_POD ROOT   (TAP)

Signals that arrive within a few instructions of one another: while the program takes note of one, another comes.
A sender goes on only when all were answered, so a lost one shows as a wait without end.
"""
import subprocess
import sys

pod, root = sys.argv[1:3]
count = failed = 0

PYTHON = """
import os, select, signal, sys, time
rounds, seconds = 4000, 12
storm = [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)]
heard, said = os.pipe()
os.set_blocking(said, False)
child = os.fork()
if not child:
    for number in [signal.SIGALRM, *storm]:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(said, warn_on_full_buffer=False)
    if @TIMER@:
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    os.write(said, b'!')
    while True:
        @LOOP@
os.close(said)
os.read(heard, 1)
done, end = 0, time.monotonic() + seconds
try:
    while done < rounds and time.monotonic() < end:
        for number in storm:
            os.kill(child, number)
        wanted, give_up = set(storm), time.monotonic() + 30
        while wanted:
            if time.monotonic() > give_up or not select.select([heard], [], [], 30)[0]:
                sys.exit('round %d: never answered: %s' % (done, sorted(wanted)))
            wanted -= set(os.read(heard, 4096))
        done += 1
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print('ok' if done > 10 else 'only %d rounds' % done)
"""

# A chain of timers, each set by the handler of the last, beside signals of one's own making: where one is lost
# the chain has ended.
CHAIN = """
import os, signal, sys, time
rings, seconds = 60000, 12
rung = own = 0
def on_alarm(*_):
    global rung
    rung += 1
    signal.setitimer(signal.ITIMER_REAL, 0.00002)
def on_own(*_):
    global own
    own += 1
signal.signal(signal.SIGALRM, on_alarm)
signal.signal(signal.SIGUSR1, on_own)
me, sent, before, end = os.getpid(), 0, -1, time.monotonic() + seconds
signal.setitimer(signal.ITIMER_REAL, 0.00002)
while rung < rings and time.monotonic() < end:
    since = time.monotonic()
    while rung == before:
        os.kill(me, signal.SIGUSR1)
        sent += 1
        if time.monotonic() - since > 30:
            sys.exit('the chain of timers ended after %d' % rung)
    before = rung
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # at its end Python restores the default, which kills
print('ok' if rung > 100 and own == sent else 'rung %d times, %d of %d answered' % (rung, own, sent))
"""

# The same between two shells; the answers come through a pipe that the sender reads. It goes on when the other is out of its
# last trap: bash itself forgets a signal that comes at the end of that signal's own trap.
BASH = """
d=$(mktemp -d); mkfifo $d/said; exec 3<>$d/said
storm='HUP QUIT USR1 USR2 TERM URG CONT PROF VTALRM'
(
	for name in $storm; do trap "echo $name >&3; out=1" $name; done
	echo ready >&3
	while :; do if [[ $out ]]; then out=; echo out >&3; fi; done
) &
read -t 30 -u 3 word
end=$((SECONDS + 6)) done=0
while ((done < 2000 && SECONDS < end)); do
	for name in $storm; do kill -$name $!; done
	wanted=" $storm "
	while [[ $wanted = *[!\ ]* ]]; do
		read -t 30 -u 3 name || { echo "round $done: never answered:$wanted"; break 2; }
		wanted=${wanted/ $name / }
	done
	until [[ $name = out ]]; do read -t 30 -u 3 name || { echo "round $done: does not come back"; break 2; }; done
	((done++))
done
kill -9 $!; wait $! 2>/dev/null
rm -r $d
((done > 5)) && echo ok
"""

# A handler that is taken back, a mask and an exec: what came before belongs to what was before.
CHANGES = """
import os, signal
heard = []
def note(number, frame): heard.append(number)
for i in range(3000):
    signal.signal(signal.SIGUSR1, note)
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    signal.signal(signal.SIGUSR1, note)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
print('ok' if len(heard) == 6000 else len(heard))
"""

# A job that is killed right after its start. `read -t` makes bash catch SIGTERM, and the child has that handler until it
# resets it: what is only noted there must not be forgotten in exec.
JOBS = """
read -t 30 word < <(echo a)
for ((i = 0; i < 8000; i++)); do
	sleep 300 & a=$!; sleep 300 & b=$!
	kill $a $b
	wait $a; x=$?; wait $b; y=$?
	[[ $x$y = 143143 ]] || { echo "job $i ended with $x and $y"; exit; }
done
echo ok
"""


def check(what, program):
    global count, failed
    count += 1
    got = subprocess.run([pod, "--root", root, *program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    ok = got.returncode == 0 and got.stdout == "ok\n"
    failed += not ok
    print("%s %d - %s%s" % ("ok" if ok else "not ok", count, what, "" if ok else "  # %r" % (got,)))
    sys.stdout.flush()


def python(timer, loop):
    return ["python3", "-c", PYTHON.replace("@TIMER@", timer).replace("@LOOP@", loop)]


check("Python in a loop: 36 signals at once, 4,000 times or 12 s", python("False", "pass"))
check("Python in system calls, with a timer on top", python("True", "time.sleep(0.0001)"))
check("a chain of 60,000 timers or of 12 s, among signals of its own", ["python3", "-c", CHAIN])
check("a loop of bash's: nine at once, 2,000 times or 6 s", ["bash", "-c", BASH])
check("a change of handler or mask loses none", ["python3", "-c", CHANGES])
check("8,000 times two jobs that are killed right after their start", ["bash", "-c", JOBS])
print("1..%d" % count)
print("# %d of %d failed" % (failed, count))
sys.exit(bool(failed))
