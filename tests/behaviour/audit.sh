#!/bin/sh
# `cordon audit`: the built program with valid, torn and tampered logs. No privileges needed.
# shellcheck disable=SC2317
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/harness/tap.sh
CORDON=${CORDON:-build/cordon}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
corpus=tests/fuzz/corpus/audit

audit() { "$CORDON" audit "$@"; }
says() { # text command...
	text=$1
	shift
	"$@" | grep -qF -- "$text"
}
status_is() { # status command...
	want=$1
	shift
	"$@" >/dev/null 2>&1
	[ $? -eq "$want" ]
}

check "a good log is whole" says "3 events, whole" audit verify $corpus/good
check "and the status says so" status_is 0 audit verify $corpus/good
check "a torn last line is told" says "the last line was never finished" audit verify $corpus/torn
check "and is no fault of the rest" status_is 0 audit verify $corpus/torn
check "a mended log is whole" says "1 unfinished lines were found" audit verify $corpus/mended
sed '2s/1+1/1+2/' $corpus/good >"$dir/changed"
check "a changed line is named" says "line 2: the line was changed" audit verify "$dir/changed"
check "status 1" status_is 1 audit verify "$dir/changed"
sed 2d $corpus/good >"$dir/missing"
check "a missing line is seen" says "line 2: a line before it is missing" audit verify "$dir/missing"
sed 1d $corpus/good >"$dir/beheaded"
check "a missing first line too" says "line 1: the lines before the first one are missing" audit verify "$dir/beheaded"
head -n 2 $corpus/good >"$dir/cut"
head=$(audit verify --json $corpus/good | sed 's/.*"head":"\([0-9a-f]*\)".*/\1/')
check "a cut log looks whole" status_is 0 audit verify "$dir/cut"
check "but not to who kept the head" status_is 1 audit verify --head "$head" "$dir/cut"
check "which the good one has" status_is 0 audit verify --head "$head" $corpus/good
check "no file" status_is 125 audit verify "$dir/nothing"
check "no operand" status_is 2 audit verify
check "show prints events" says 'sess_1 execute_start code="1+1"' audit show $corpus/good
check "show filters" says 'session_close' audit show -e session_close $corpus/good
check "show leaves out" status_is 1 says execute_start audit show -e session_close $corpus/good
check "show prints JSON" says '"event":"execute_start"' audit show --json $corpus/good
check "tail prints the last" says session_close audit tail -n 1 $corpus/good
check "and not the first" status_is 1 says session_start audit tail -n 1 $corpus/good
check "tail refuses nonsense" status_is 2 audit tail -n x $corpus/good
printf '{"timestamp":"t","event":"e","session_id":"s","x":"\\u001b[2J\\u009b\302\233"}\n' >"$dir/evil"
check "a guest cannot steer the terminal" status_is 1 says "$(printf '\033')" audit show "$dir/evil"
check "nor by other control characters" status_is 1 says "$(printf '\302\233')" audit show "$dir/evil"

# From here on with a sandbox.
ran() { # option... -- code
	"$CORDON" run -g sh "$@" </dev/null 2>&1
}
fails_with() { # text command...
	text=$1
	shift
	output=$("$@")
	status=$?
	case $status:$output in 125:*"$text"*) return 0 ;; esac
	echo "$status $output"
	return 1
}
fails_with_2() { # text command...
	text=$1
	shift
	output=$("$@")
	status=$?
	case $status:$output in 2:*"$text"*) return 0 ;; esac
	echo "$status $output"
	return 1
}
if needs "a wall that can start a shell" ran -e true; then
	log=$dir/rotated
	for _ in 1 2 3 4 5 6 7 8; do
		ran --audit "$log" --set audit_rotate_bytes=4096 --set audit_keep=2 --set audit_sync=always -e 'echo hi' >/dev/null
	done
	check "the oldest of the full logs are gone" test ! -e "$log.1"
	check "two stay" test "$(find "$dir" -name 'rotated.*' | wc -l)" = 2
	# shellcheck disable=SC2046
	check "the chain goes through all of them" audit verify $(find "$dir" -name 'rotated.*' | sort -t. -k2n) "$log"
	check "nonsense is refused" says "audit_sync must be never, close or always" ran --set audit_sync=maybe -e true
	check "explained" says "The last 2 rotated logs are kept" "$CORDON" policy explain --set audit_keep=2
	cat >"$dir/tools.json" <<JSON
[{"name": "lose", "command": ["rm", "-f", "$dir/lost"]}, {"name": "note", "command": ["touch", "$dir/noted"]}]
JSON
	check "a log that vanishes ends the run where it is required" fails_with "vanished" \
		ran --audit "$dir/lost" --tools "$dir/tools.json" --set audit_required=true -e 'lose; note; echo still here'
	check "and nothing ran unrecorded" test ! -e "$dir/noted"
	check "elsewhere the code goes on" says "still here" \
		ran --audit "$dir/lost" --tools "$dir/tools.json" -e 'lose; note; echo still here'
	check "with its tools" test -e "$dir/noted"
fi
if needs "a wall that can start Python" "$CORDON" run -e 1; then
	cat >"$dir/watched.json" <<'JSON'
[{"name": "add", "args": {"key": "string"}, "command": ["echo", "\"value-secret\""]}]
JSON
	watched() { # option...
		"$CORDON" run --tools "$dir/watched.json" "$@" -e 'x = "code-secret"; add("arg-secret")' </dev/null 2>&1 >"$dir/out"
	}
	watched -v >"$dir/err"
	check "verbose: a line for each event, with a prefix" test "$(sed 's/^\[cordon\] sess_[0-9a-f]* \([a-z_]*\).*/\1/' "$dir/err" | tr '\n' ' ')" = \
		"session_start execute_start tool_call tool_result execute_complete session_close "
	check "verbose: who is called" says "tool_call tool=add call=1" cat "$dir/err"
	check "verbose: no secrets" status_is 1 says -secret cat "$dir/err"
	check "verbose: nothing of it on standard output" test "$(cat "$dir/out")" = "'value-secret'"
	check "silent without it" test -z "$(watched)"
	watched -v --json >"$dir/err"
	check "verbose: lines of JSON" test "$(grep -c '^{"timestamp":".*"session_id":"sess_.*}$' "$dir/err")" = 6
	check "verbose is no record" fails_with_2 "audit_required" watched -v --set audit_required=true
fi
if needs "a wall that can start Python" "$CORDON" run -e 1; then
	# Killed at any moment, a program leaves a log that is whole up to its last line, and the next one goes on.
	cat >"$dir/ping.json" <<'JSON'
[{"name": "ping", "command": ["true"]}]
JSON
	bad=0
	for pause in 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.5 0.6; do
		"$CORDON" run --audit "$dir/killed" --tools "$dir/ping.json" -e 'while True: ping()' </dev/null >/dev/null 2>&1 &
		sleep "$pause"
		kill -9 $!
		wait $! 2>/dev/null
		[ ! -e "$dir/killed" ] || audit verify "$dir/killed" >"$dir/verdict" || { bad=1; cat "$dir/verdict"; }
	done
	check "killed at any moment, the log verifies" test $bad = 0
	check "and it is no empty one" says '"event":"tool_result"' cat "$dir/killed"
fi
full() { # option...: a disk of one page, in a mount namespace of its own
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t tmpfs -o size=4k tmpfs "$1" || exit 77; shift; "$@"; status=$?; cat "$dir/full/log" >"$dir/full.log"; exit $status' \
		sh "$dir/full" "$CORDON" run -g sh --audit "$dir/full/log" "$@" </dev/null 2>&1
}
mkdir "$dir/full"
export dir CORDON
if needs "a mount namespace and a wall" full -e true; then
	long="echo ran # $(printf '%04000d' 0)"
	check "a full disk stops what must be recorded" fails_with "No space left" full --set audit_required=true -e "$long"
	check "before it runs" status_is 1 says ran full --set audit_required=true -e "$long"
	check "what was written says what is missing" says "1 events were lost" audit verify "$dir/full.log"
	check "and the rest is good" says '"reason":null' audit verify --json "$dir/full.log"
	check "elsewhere it runs" says ran full -e "$long"
fi
tap_done
