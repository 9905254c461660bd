#!/bin/bash
# The ladder: what a machine lacks is said before any code runs, with the layer, the reason and the remedy. The
# machine that lacks user namespaces is made with one that may have no children.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${CORDON:=$here/../../build/cordon}"
count=0 failed=0

check() { # name status pattern output
	count=$((count + 1))
	if [ "$2" = 0 ] && printf '%s' "$4" | grep -q "$3"; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		printf '%s\n' "$4" | sed 's/^/# /'
		failed=$((failed + 1))
	fi
}

without_userns() {
	unshare -U -r sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"' sh "$CORDON" "$@" 2>&1
}

out=$(without_userns run -e 'print("ran")')
check "no user namespaces: exit 125" $(($? != 125)) . "$out"
check "no user namespaces: the layer is named" 0 "requires the layer 'user'" "$out"
check "no user namespaces: the remedy is named" 0 "remedy: allow unprivileged user namespaces" "$out"
case $out in *ran*) ran=1 ;; *) ran=0 ;; esac
check "no user namespaces: no code ran" $ran . "$out"
out=$(unshare -U -r "$CORDON" run -e '1 + 2' 2>&1)
check "root of a user namespace only" $? '^3$' "$out"
out=$(unshare -U -r "$CORDON" run --set require+=cgroups -e '1' 2>&1)
check "required control groups that are not ours" $(($? == 0)) "control group" "$out"
echo "1..$count"
[ $failed = 0 ]
