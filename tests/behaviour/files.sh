#!/bin/sh
# `cordon files`: saved workspaces and exports. No privileges needed. exports/version1.cws was written
# by the first version, and every later version must read it; forged.cws has a correct checksum and hostile entries.
# shellcheck disable=SC2317
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/harness/tap.sh
CORDON=${CORDON:-build/cordon}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_DATA_HOME="$dir/data"
good=tests/behaviour/exports/version1.cws
forged=tests/behaviour/exports/forged.cws

files() { "$CORDON" files "$@"; }
says() { # text command...
	text=$1
	shift
	"$@" 2>&1 | grep -qF -- "$text"
}
is_empty() { [ -z "$("$@")" ]; }
import_stdin() { files import piped - <"$good"; }
same() { cmp "$1" "$2"; }
to_file() { # file command...
	file=$1
	shift
	"$@" >"$file"
}
# On a terminal (script makes one) what takes longer than a second says so; elsewhere nothing does.
slow_import() { # command line
	script -qec "(sleep 1.6; cat '$good') | $1" /dev/null </dev/null
}
flip() { # offset
	cp "$good" "$dir/bad.cws"
	printf X | dd of="$dir/bad.cws" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

check "nothing is saved at first" is_empty files ls
check "import" says "2 files, 24 bytes" files import mine "$good"
check "it is listed" says mine files ls
check "ls" says /home/user/a.txt files ls mine
check "ls of a directory" says /workspace/run.sh files ls mine /workspace
check "ls -l" says "l0777            0 /tmp/link -> /home/user/a.txt" files ls -l mine
check "ls --json" says '"path":"/workspace/run.sh","type":"file","size":18,"mode":493' files ls --json mine
check "ls of an export by path" says /home/user/a.txt files ls "$good"
check_fails "ls of what is not there" 125 "ENOENT" files ls mine /workspace/nothing
check_fails "ls of an unknown workspace" 125 "no workspace 'other' is saved" files ls other
check "cat" says hello files cat mine /home/user/a.txt
check "cat of a relative path" says hello files cat mine a.txt
check_fails "cat of a directory" 2 "is not a file" files cat mine /tmp
check_fails "cat of what is not there" 125 "ENOENT" files cat mine b.txt
check "export to a file" files export mine "$dir/out.cws"
check_fails "export does not replace" 125 "--force replaces it" files export mine "$dir/out.cws"
check "export --force does" files export --force mine "$dir/out.cws"
check "export to a pipe" to_file "$dir/pipe.cws" files export mine
check "which is the same" same "$dir/out.cws" "$dir/pipe.cws"
check "import from a pipe" import_stdin
check "no difference" files diff mine "$good"
check "import of forged entries takes the sound ones" says "3 files" files import forged "$forged"
check "and names the others" says "skipped /etc/absolute: absolute path" files import forged "$forged"
check "and again" says "skipped tmp/out/x: through a link or a file" files import forged "$forged"
check "lines of texts are shown" says '  +x' files diff piped forged
check_fails "differences are status 1" 1 "added    /tmp/esc\\x1b[31m" files diff mine forged
check "control characters never reach the terminal" says '/tmp/esc\x1b[31m' files ls forged
check "nothing came out of it" test ! -e /etc/absolute
flip 100
check_fails "a changed byte" 2 "State blob checksum mismatch: data may be corrupted" files import x "$dir/bad.cws"
flip 8
check_fails "a later version" 125 "Unsupported state version: 88" files ls "$dir/bad.cws"
flip 0
check_fails "another magic" 2 "bad magic bytes" files ls "$dir/bad.cws"
head -c 200 "$good" >"$dir/bad.cws"
check_fails "cut short" 2 "truncated" files export "$dir/bad.cws" "$dir/never.cws"
check "nothing is written of it" test ! -e "$dir/never.cws"
check_fails "not an export" 2 "Invalid state blob" files ls ./meson.build
check "rm" files rm mine
check_fails "rm twice" 125 "no workspace 'mine' is saved" files rm mine
check_fails "unknown word" 2 "unknown word" files list
check "strange names stay in the directory" files import ../../../escape "$good"
check "under a name of its own" says escape ls "$dir/data/cordon/workspaces"
check "progress on a terminal" says "import: 1 s" slow_import "'$CORDON' files import slow -"
check "none where standard error is a file" is_empty slow_import "'$CORDON' files import slow - 2>&1 >/dev/null | cat"
tap_done
