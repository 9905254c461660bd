#!/bin/sh
# `cordon policy` of the built program: show, check, explain and diff. No privileges needed.
# shellcheck disable=SC2317
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/harness/tap.sh
CORDON=${CORDON:-build/cordon}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

policy() { "$CORDON" policy "$@"; }
says() { # text command...
	text=$1
	shift
	"$@" | grep -qF -- "$text"
}
says_not() { # text command...
	text=$1
	shift
	output=$("$@" 2>&1)
	case $output in *"$text"*) return 1 ;; esac
}
# A policy file with this text; its name is in $file.
given() {
	file=$dir/policy.json
	printf '%s' "$1" >"$file"
}
refuses() { # name json text
	given "$2"
	check_fails "$1" 2 "$3" policy check "$file"
}
accepts() { # name json line
	given "$2"
	check "$1" says "$3" policy check "$file"
}

# Levels: LVL-01, LIM-03.
for level in permissive:60000:1073741824 standard:30000:536870912 strict:10000:268435456; do
	name=${level%%:*} rest=${level#*:}
	check "$name: wall clock" says "\"timeout_ms\": ${rest%%:*}," policy show --level "$name"
	check "$name: memory" says "\"memory_bytes\": ${rest#*:}," policy show "$name"
done
check "standard is the default" says '"level": "standard"' policy show
for pair in cpu_seconds:60 file_bytes:52428800 processes:50 open_files:256; do
	check "default ${pair%:*}" says "\"${pair%:*}\": ${pair#*:}" policy show
done
modules() { policy show --set "modules=$1" | sed -n '/"modules"/,/\]/p' | grep -c '^    "'; }
for pair in strict:3 standard:4 permissive:6; do
	check "modules by the name ${pair%:*}" test "$(modules "${pair%:*}")" = "${pair#*:}"
done
check_fails "an unknown level" 2 "level must be permissive, standard or strict, got: lax" policy show --level lax

# Limits by their short names: LIM-01, LIM-02.
refuses "LIM-01 names" '{"limits": {"bogus": 10}}' \
	"Unknown limit name(s): bogus. Valid names: cpu, memory, fsize, nproc, nofile, stack"
for value in -1 0 '"ten"' '[10, 20]'; do
	refuses "LIM-02 cpu $value" "{\"limits\": {\"cpu\": $value}}" "Limit 'cpu' must be a single positive number, got: "
	refuses "LIM-02 timeout_ms $value" "{\"timeout_ms\": $value}" "timeout_ms must be a single positive number, got: "
done
accepts "limits reach their fields" '{"limits": {"cpu": 3, "nproc": 7}}' "It is ended after 3 s of CPU time."

# What is wrong is refused by name, in one line, with status 2.
one_line() { test "$(policy check "$file" 2>&1 | wc -l)" = 1; }
refuses "an unknown field" '{"timout_ms": 1}' "Unknown policy field 'timout_ms'. Did you mean 'timeout_ms'? Valid fields: level, "
check "an error is one line" one_line
refuses "an unknown field of network" '{"network": {"alow": []}}' "Did you mean 'network.allow'?"
refuses "a field twice" '{"timeout_ms": 1, "timeout_ms": 2}' "duplicate object key"
refuses "no JSON" '{"timeout_ms": 1,}' "is not valid JSON"
refuses "not an object" '[1]' "a policy must be a JSON object"
refuses "an empty file" '' "is not valid JSON"
refuses "over a day" '{"timeout_ms": 86400001}' "timeout_ms must be at most 86400000 (24 h)"
refuses "no room for an interpreter" '{"memory_bytes": 1048576}' "memory_bytes must be at least 16777216 (16 MiB)"
refuses "memory without a limit" '{"memory_bytes": null}' "memory_bytes cannot be unlimited"
refuses "stack over memory" '{"stack_bytes": 1073741824}' "is more than memory_bytes"
refuses "a forbidden variable" '{"env": ["LD_PRELOAD"]}' "env[0] must be a variable's name that may cross"
refuses "ENV-04 a bad name" '{"env_set": {"1x": "a"}}' "env_set: '1x' is not a variable's name"
refuses "a mount over the wall" '{"mounts": ["/srv:/usr/lib"]}' "/usr/lib belongs to the wall"
refuses "mounts that overlap" '{"mounts": ["/a:/d", "/b:/d/e"]}' "overlap"
refuses "the host's processes" '{"mounts": ["/proc:/p:ro"]}' "would open the host itself"
refuses "a secret without its host" '{"secrets": [{"name": "K", "value": "v", "host": "h.org"}]}' \
	"which network.allow does not allow"
refuses "a URL for a host" '{"network": {"allow": ["https://a.org"]}}' "is not a host pattern"
refuses "an interpreter by name" '{"python": "python3"}' "python must be an absolute path"
refuses "an unknown layer" '{"require": ["secomp"]}' "Did you mean 'seccomp'?"
check_fails "no such file" 2 "No such file" policy check "$dir/none"
check_fails "a directory" 2 "is a directory" policy check "$dir"
check_fails "check without a file" 2 "check needs a policy file" policy check
check_fails "an unknown word" 2 "explain" policy explian
printf '{"python": "/\377"}' >"$dir/bad-utf8"
check_fails "invalid UTF-8" 2 "is not valid JSON" policy check "$dir/bad-utf8"
head -c 17000000 /dev/zero | tr '\0' ' ' >"$dir/big"
check_fails "over the size" 2 "$dir/big" policy check "$dir/big"
nested() { printf '{"a":%s' "$(printf '[%.0s' $(seq 100))" | policy check -; }
check_fails "too deep" 2 "64 levels" nested

# Options: the level, then files, then single options, then --set.
given '{"level": "strict", "timeout_ms": 5000, "mounts": ["/a:/b"]}'
check "a file" says '"timeout_ms": 5000,' policy show "$file"
check "its level" says '"processes": 16,' policy show "$file"
check "--timeout wins" says '"timeout_ms": 1500,' policy show -p "$file" --timeout 1.5s
check "--memory" says '"memory_bytes": 268435456,' policy show -m 256M
check "--set wins" says '"timeout_ms": 7,' policy show -p "$file" -t 5s --set timeout_ms=7
check "--mount adds" says '"guest": "/b"' policy show -p "$file" --mount /c,d:/e:ro
check "--mount takes commas" says '"host": "/c,d"' policy show -p "$file" --mount /c,d:/e:ro
check "--allow-host adds" says '"y.org"' policy show --allow-host x.org --allow-host y.org
check "--env" says '"MY_VAR": "a=b"' policy show --env MY_VAR=a=b
check "dots reach inside" says '"api.example.org"' policy show --set network.allow=api.example.org
check "standard input" says '"timeout_ms": 9,' sh -c "echo '{\"timeout_ms\": 9}' | '$CORDON' policy show -"
check_fails "--set of nothing" 2 "write KEY=VALUE" policy show --set timeout_ms
check_fails "--set level" 2 "choose it with --level" policy show --set level=strict
check_fails "a bad --timeout" 2 "timeout_ms must be a single positive number, got: soon" policy show --timeout soon

# What show prints is a policy, and the same one.
policy show strict --set network.allow=a.org --set timeout_ms=none >"$dir/shown"
policy show "$dir/shown" >"$dir/again"
check "show reads back" cmp "$dir/shown" "$dir/again"

# Sentences.
given '{"network": {"allow": ["h.org"]}, "secrets": [{"name": "K", "env": "TEST_KEY", "host": "h.org"}], "modules": ["math"]}'
TEST_KEY=hunter2
export TEST_KEY
check "changed fields are named" says "Level standard, changed in modules, network.allow, secrets." policy check "$file"
check "the network" says "Through the gateway it reaches h.org." policy explain "$file"
check "no network" says "It reaches no network at all." policy explain
check "a secret is not explained" says_not hunter2 policy explain "$file"
check "a secret is not shown" says_not hunter2 policy show "$file"
check "a secret is not compared" says_not hunter2 policy diff standard "$file"
check "--quiet" test -z "$(policy check -q "$file" 2>&1)"

# Differences: status 0 and nothing when there are none, else 1.
check "no difference" test -z "$(policy diff strict strict 2>&1)"
check_fails "tighter" 1 "memory_bytes: 536870912 -> 268435456 (tighter)" policy diff standard strict
check_fails "looser" 1 "tool_calls: 100 -> none (looser)" policy diff strict standard
check_fails "diff of one" 2 "diff needs two policies" policy diff strict
tap_done
