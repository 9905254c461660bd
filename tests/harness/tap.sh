# harness/tap.sh - TAP for suites written in sh. Source it; then: check "name" command...; at the end: tap_done.
# A command that succeeds is a pass. needs "what" command... returns false after reporting one skip (or one
# failure if CORDON_NEEDS=strict).
# shellcheck shell=sh
tap_count=0
tap_failed=0

tap_result() { # status name
	tap_count=$((tap_count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_count - $2"
	else
		echo "not ok $tap_count - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

check() { # name command...
	tap_name=$1
	shift
	tap_output=$("$@" 2>&1)
	tap_status=$?
	tap_result $tap_status "$tap_name"
	[ $tap_status = 0 ] || printf '%s\n' "$tap_output" | sed 's/^/# /' >&2
}

# The command must fail with this status and say this text.
check_fails() { # name status text command...
	tap_name=$1 tap_want=$2 tap_text=$3
	shift 3
	tap_output=$("$@" 2>&1)
	tap_status=$?
	case $tap_output in *"$tap_text"*) tap_said=0 ;; *) tap_said=1 ;; esac
	if [ $tap_status = "$tap_want" ] && [ $tap_said = 0 ]; then
		tap_result 0 "$tap_name"
	else
		tap_result 1 "$tap_name"
		echo "# status $tap_status, want $tap_want with '$tap_text':" >&2
		printf '%s\n' "$tap_output" | sed 's/^/# /' >&2
	fi
}

# What a command gave: its status must be 0 and its output match.
says() { # name status pattern output
	if [ "$2" = 0 ] && printf '%s' "$4" | grep -q "$3"; then
		tap_result 0 "$1"
	else
		tap_result 1 "$1"
		printf '%s\n' "$4" | sed 's/^/# /'
	fi
}

needs() { # what command...
	tap_what=$1
	shift
	"$@" >/dev/null 2>&1 && return 0
	if [ "${CORDON_NEEDS:-}" = strict ]; then
		tap_result 1 "needs $tap_what"
	else
		tap_count=$((tap_count + 1))
		echo "ok $tap_count - needs $tap_what # SKIP there is none"
	fi
	return 1
}

tap_done() {
	echo "1..$tap_count"
	[ $tap_failed = 0 ]
	exit
}
