#!/bin/sh
# `cordon run --tools`: host commands called from every guest, budgets, approval, and the audit log of it.
# shellcheck disable=SC2016,SC2317
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/harness/tap.sh
CORDON=${CORDON:-build/cordon}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

cat >"$dir/add" <<'SH'
#!/bin/sh
# Adds two integers that come as {"a":2,"b":3}, and notes that it ran.
echo ran >>"$(dirname "$0")/ran"
read -r line
a=${line#*\"a\":} b=${line#*\"b\":}
a=${a%%[,\}]*} b=${b%%[,\}]*}
echo $((${a%.0} + ${b%.0}))
SH
chmod +x "$dir/add"
cat >"$dir/tools.json" <<'JSON'
{"tools": [
 {"name": "add", "description": "Adds.", "args": {"a": "number", "b": "number"}, "command": ["./add"]},
 {"name": "typed", "args": {"a": "numeric"}, "command": ["echo", "1"]},
 {"name": "ping", "command": ["echo", "\"pong\""]},
 {"name": "pi", "command": ["echo", "3.141592653589793"]},
 {"name": "slow", "timeout_ms": 100, "command": ["sleep", "100"]},
 {"name": "once", "max_calls": 1, "command": ["echo", "1"]},
 {"name": "broken", "command": ["sh", "-c", "echo tool failed in /srv/x >&2; exit 1"]},
 {"name": "upper", "description": "Upper case.", "category": "text",
  "usage": "upper < FILE", "examples": ["echo a | upper", "upper < list"], "argv": true, "command": ["tr", "a-z", "A-Z"]},
 {"name": "same", "argv": true, "command": ["cat"]},
 {"name": "wide", "args": {"s": "string"}, "argument_bytes": 6000000, "result_bytes": 6000000, "command": ["cat"]},
 {"name": "tree", "description": "Takes a tree.", "command": ["cat"],
  "args": {"type": "object", "properties": {"t": {"$ref": "#/$defs/node", "description": "The tree."},
   "day": {"anyOf": [{"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\d$"}, {"type": "null"}]}}, "required": ["t"],
   "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["v"], "additionalProperties": false}}},
  "python_package": {"__init__.py": "from .inner import grow\n", "inner.py": "def grow(n):\n    from cordon import call\n    return call('tree', t={'v': n})\n"}},
 {"name": "args", "argv": true, "command": ["printf", "<%s>"]},
 {"name": "test", "argv": true, "command": ["printf", "<%s>", "tool"]},
 {"name": "bad", "argv": true, "command": ["sh", "-c", "echo oops >&2; exit 3"]},
 {"name": "pay", "args": {"n": "number"}, "approval": true, "command": ["echo", "\"paid\""]}]}
JSON

run() { # guest code [option...]
	guest=$1 code=$2
	shift 2
	"$CORDON" run -g "$guest" --tools "$dir/tools.json" "$@" -e "$code" </dev/null 2>&1
}
gives() { # text guest code [option...]
	text=$1
	shift
	output=$(run "$@")
	case $output in *"$text"*) return 0 ;; esac
	echo "$output"
	return 1
}
never_ran() { # guest code
	rm -f "$dir/ran"
	run "$@" >/dev/null
	[ ! -e "$dir/ran" ]
}

advised() { # guest code call
	gives "\"warnings\": [\"Code contains call to \`$3()\` which may be restricted by the sandbox\"]" "$1" "$2" \
		--validate --json && gives '"warnings": []' "$1" "$2" --set validate=false --json
}

if needs "a wall that can start Python" run python 1; then
	check "advice" advised python 'x = 1; eval("1")' eval
	check "advice in words" gives 'warning: Code contains call to `eval()`' python 'eval("1")' --validate
	check "broken code" gives "SyntaxError: '{' was never closed" python 'if True {' --validate
	check "call" gives 5 python 'add(a=2, b=3)'
	check "chain" gives 13 python 'x = add(a=1, b=2); add(a=x, b=10)'
	check "no arguments" gives pong python 'ping()'
	check "precision" gives True python 'pi() == 3.141592653589793'
	check "wrong type" gives "Tool 'typed': argument 'a' must be numeric" python 'typed(a="hello")'
	check "unexpected" gives "Unexpected arguments for tool 'add': 'evil'" python 'add(a=1, b=2, evil=3)'
	check "a tool's error, without paths" gives "tool failed in [path]" python 'broken()'
	check "and life goes on" gives 5 python 'try:
 broken()
except Exception: pass
add(a=2, b=3)'
	check "a slow tool" gives "Tool 'slow' timed out after 0.1 seconds" python 'slow()'
	check "its own budget" gives "Maximum calls of tool 'once' (1) exceeded" python 'once(); once()'
	check "the policy's budget" gives "Maximum tool calls (2) exceeded" python '[ping() for i in range(3)]' --set tool_calls=2
	check "exactly the budget" gives pong python 'ping(); ping()' --set tool_calls=2
	check "a tree" gives "{'t': {'v': 1, 'kids': [{'v': 2}]}}" python 'tree(t={"v": 1, "kids": [{"v": 2}]})'
	check "a bad leaf" gives "argument 't.kids[0].v' must be integer, got string" python 'tree(t={"v": 1, "kids": [{"v": "x"}]})'
	check "a day" gives 2024 python 'tree(t={"v": 1}, day="2024-01-31")'
	check "no day" gives "fits none of its alternatives" python 'tree(t={"v": 1}, day="tomorrow")'
	check "help" gives "t: list. The tree." python 'help(tree)'
	check "a package that comes with a tool" gives "{'t': {'v': 7}}" python 'import tree; tree.grow(7)'
	check "usage and examples in Python" gives "Example: echo a | upper" python 'help(upper)'
	# The id is no secret to code that looks for it in its own process.
	by_hand='import json, os, sys
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "ident"): frame = frame.f_back
ident = frame.f_locals["self"].ident
def say(tool, args):
    os.write(3, ("{\"type\":\"tool_call\",\"id\":%d,\"call\":99,\"tool\":\"%s\",\"args\":%s}\n" % (ident, tool, args)).encode())
'
	check "by hand: the id is the right one" gives pong python "$by_hand"'say("ping", "{}"); os.read(3, 1000).decode()'
	check "by hand: wrong type" never_ran python "$by_hand"'say("add", "{\"a\":\"x\",\"b\":1}")'
	check "by hand: extra argument" never_ran python "$by_hand"'say("add", "{\"a\":1,\"b\":1,\"c\":1}")'
	check "by hand: another name" never_ran python "$by_hand"'say("../add", "{\"a\":1,\"b\":1}")'
	check "not in the policy" gives "add: tool not allowed by security policy" python 'import cordon; cordon.call("add", a=1, b=2)' --set tools=ping
	check "approval: allowed" gives paid python 'pay(n=1)' --approve allow
	check "approval: denied" gives "Tool 'pay' was denied" python 'pay(n=1)' --approve deny
	check "five megabytes, any bytes" gives "True True" python 'import os
b = os.urandom(5000000); t = "\u00e9\n" * 1600000
print(same(stdin=b)["stdout"] == b, same(stdin=t)["stdout"] == t)'
	check "five megabytes to a function" gives 5000000 python 'len(wide(s="x" * 5000000)["s"])'
	check "too much for a function" gives "the value is too large (more than 6000000 bytes)" python 'wide(s="x" * 7000000)'
	check "by hand: too much for this tool" gives "arguments too large (3000008 bytes, max 1048576)" python "$by_hand"'line = json.dumps({"type": "tool_call", "id": ident, "call": 1, "tool": "ping", "args": {"x": "y" * 3000000}}).replace(": ", ":")
line = "{\"type\":\"tool_call\"," + line[len("{\"type\":\"tool_call\", "):]
data = line.encode() + b"\n"
while data: data = data[os.write(3, data):]
os.read(3, 1000).decode()'
	check "by hand: too much for any tool" gives "IPC message too large" python 'import os
while True: os.write(3, b"{\"type\":\"tool_call\"," + b"x" * 60000)'
	run python 'add(a=2, b=3)' --audit "$dir/audit" >/dev/null
	check "audited in order" test "$(sed 's/.*"event":"\([^"]*\)".*/\1/' "$dir/audit" | tr '\n' ' ')" = \
		"session_start execute_start tool_call tool_result execute_complete session_close "
	check "the log is whole" "$CORDON" audit verify "$dir/audit"
	check "and private" test "$(stat -c %a "$dir/audit")" = 600
fi
if needs "a wall that can start R" run r 1; then
	check "R: advice" advised r 'x <- 1; system("true"); 3' system
	check "R: call" gives 5 r 'add(2, 3)'
	check "R: usage and examples" gives "Example: echo a | upper" r 'help(upper)'
	check "R: wrong type" gives "Tool 'typed': argument 'a' must be numeric, got character" r 'typed("hello")'
	check "R: five megabytes, any bytes" gives "TRUE TRUE" r 'b <- as.raw(rep_len(0:255, 5e6)); t <- strrep("ab\n", 1700000)
cat(identical(same(stdin = b)$stdout, b), identical(same(stdin = t)$stdout, t))'
	check "R: error" gives "tool failed in [path]" r 'broken()'
fi
if needs "a wall that can start Node" run node 1; then
	check "Node: advice" advised node 'let x = 1; eval("1")' eval
	check "Node: call" gives 5 node 'await add({a: 2, b: 3})'
	check "Node: five megabytes, any bytes" gives "true true" node 'const b = require("crypto").randomBytes(5e6)
const t = "ab\n".repeat(1700000); console.log(b.equals(same({stdin: b}).stdout), same({stdin: t}).stdout === t)'
	check "Node: error" gives "tool failed in [path]" node 'await broken()'
fi
if needs "a wall that can start a shell" run sh true; then
	check "sh: advice" advised sh 'echo a; eval true' eval
	check "sh: broken code runs not at all" test "$(run sh 'echo early
if true; then' --validate 2>/dev/null | grep -c early)" = 0
	check "sh: call" gives 5 sh 'add --a 2 --b 3'
	check "sh: pipe" gives OLLEH sh 'echo hello | upper | rev'
	check "sh: five megabytes through three in a pipe" gives same sh 'head -c 5000000 /dev/urandom >/tmp/b
same </tmp/b | same | same | cmp - /tmp/b && echo same'
	check "sh: five megabytes of lines" gives 5000000 sh 'yes | head -c 5000000 | same | wc -c'
	check "sh: too much" gives "same: IPC message too large" sh 'head -c 17000000 /dev/zero | same | wc -c'
	check "sh: arguments" gives "<one two><3>" sh 'args "one two" 3'
	check "sh: redirect" gives "<x>" sh 'args x > /tmp/out; cat /tmp/out'
	check "sh: status" gives "3-" sh 'bad && echo no; echo $?-'
	check "sh: standard error" gives oops sh 'bad'
	check "sh: error" gives "broken: tool failed in [path]" sh 'broken'
	check "sh: help" gives "Upper case." sh 'upper --help'
	check "sh: which" gives /run/cordon/bin/upper sh 'which upper'
	check "sh: type" gives "upper is /run/cordon/bin/upper" sh 'type upper'
	check "sh: command -v" gives /run/cordon/bin/upper sh 'command -v upper'
	check "sh: xargs" gives "<one><two>" sh 'echo one two | xargs args'
	check "sh: find -exec" gives "<./one>" sh 'cd /tmp; touch one; find . -name one -exec args {} \;'
	check "sh: env, timeout" gives "<x>HI" sh 'env args x; echo hi | timeout 5 upper'
	check "sh: in place of a builtin" gives "<tool><x>" sh 'test x'
	check "sh: with few commands" gives "<one>" sh 'args one' --set commands=cat,args
	check "sh: not among the commands" gives "args: tool not allowed by security policy" sh 'args one' --set commands=cat
	check "sh: and the remedy names the field" gives "commands: name the tool" sh 'args one' --set commands=cat --json
	check "sh: nothing to write to" gives "Read-only file system" sh 'echo x >/run/cordon/bin/new'
	check "sh: not in the policy" gives "upper: tool not allowed by security policy" sh 'echo hi | upper' --set tools=args
	check "sh: and its status" gives 126- sh 'echo hi | upper 2>/dev/null; echo $?-' --set tools=args
	check "sh: nor by another program" gives 123 sh 'echo hi | xargs upper 2>/dev/null; echo $?' --set tools=args
	check "sh: nor is it described" gives "unknown extension" sh 'extensions info upper' --set tools=args
	check "sh: the result says so" gives '"target":"upper","layer":"tools"' sh 'upper' --set tools=args --json
	run sh 'upper 2>/dev/null; echo "x: tool not allowed by security policy" >&2' --set tools=args --audit "$dir/denied" >/dev/null
	check "sh: a denial is recorded by its cause, once" test "$(grep -c '"event":"capability.denied"' "$dir/denied")" = 1
	check "sh: extensions" gives "Upper case." sh 'extensions list --category text'
	check "sh: extensions as JSON" gives '"name":"upper"' sh 'extensions list --json | tr -d " "'
	check "sh: usage" gives "Usage:       upper < FILE" sh 'extensions info upper'
	check "sh: examples" gives "Example: upper < list" sh 'upper --help'
	check "sh: no such extension" gives "unknown extension" sh 'extensions info nope'
fi
tap_done
