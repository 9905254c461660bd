#!/bin/bash
# A missing layer is reported before any code runs, with its name, the reason and the remedy. A user namespace that
# may have no children stands for a machine without user namespaces.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${CORDON:=$here/../../build/cordon}"
# shellcheck source=tests/harness/tap.sh
. "$here/../harness/tap.sh"

is() { # the status of a test, as a word
	test "$@" && echo 0 || echo 1
}

# As whoever runs this, and from root also as an ordinary user.
users=self
reach=$(mktemp -d) # copies that such a user can reach
chmod 755 "$reach"
trap 'rm -rf "$reach"' EXIT
if [ "$(id -u)" = 0 ]; then
	users="self ordinary"
	cp "$CORDON" "$reach/cordon"
	cp "$here/without-userns" "$reach/without-userns"
fi

without_userns() {
	case $who in
	self) "$here/without-userns" "$CORDON" "$@" 2>&1 ;;
	*) # a uid of its own: here processes are counted with all others of the user, and other suites end some
		(cd / && setpriv --reuid 64997 --regid 64997 --clear-groups env -i PATH=/usr/bin:/bin LANG=C.UTF-8 \
			"$reach/without-userns" "$reach/cordon" "$@" 2>&1)
		;;
	esac
}

BELOW=require=landlock,seccomp,rlimits

below() { # run on the rung without namespaces
	without_userns run --set $BELOW "$@"
}

refused() {
	out=$(without_userns run -e 'print("ran")')
	says "$who: no user namespaces: exit 125" $(($? != 125)) . "$out"
	says "$who: no user namespaces: the layer is named" 0 "requires the layer 'user'" "$out"
	says "$who: no user namespaces: the remedy is named" 0 "remedy: allow unprivileged user namespaces" "$out"
	case $out in *ran*) ran=1 ;; *) ran=0 ;; esac
	says "$who: no user namespaces: no code ran" $ran . "$out"
	out=$(without_userns run --set require=net,landlock,seccomp -e 'print("ran")')
	says "$who: one namespace is required: it is named" $(($? != 125)) "requires the layer 'net'" "$out"
	if [ "$who" = self ]; then
		out=$(below --set network.allow=example.org -e '1')
		says "no gateway without a network namespace" $(($? == 0)) "needs a network namespace" "$out"
	fi
	out=$(below -g pod -e '1')
	says "$who: a guest that cannot be there says so" $(($? == 0)) "needs a mount namespace\|no pod image" "$out"
	out=$(below --set mounts=/etc:/mnt/etc:ro -e '1')
	says "$who: no mount elsewhere without a mount namespace" $(($? == 0)) "cannot be seen as '/mnt/etc'" "$out"
}

runs() {
	out=$(below --json -e 'open("x", "w").write("y"); import os; print(os.getuid(), os.getcwd()); 6 * 7')
	says "$who: Python runs on the rung below" $? '"result": 42' "$out"
	says "$who: it says that there are no namespaces" 0 '"namespaces":\[\],"lacks":\["no user namespace' "$out"
	groups=$(without_userns doctor --json | sed -n 's/.*"layer": *"cgroups"[^}]*"there": *\(true\|false\).*/\1/p')
	case $groups in true) pattern='"cgroups":"v[12]"' ;; *) pattern='no control group: memory is limited process by process.*"cgroups":null' ;; esac
	says "$who: it is in a control group where doctor has one, and says so where not ($groups)" "$(is -n "$groups")" "$pattern" "$out"
	says "$who: it says that there is no quota" 0 'no quota: fs_bytes' "$out"
	says "$who: Landlock and the filter are proven" 0 '"landlock":[1-9].*"seccomp":"sha256:.*"no_new_privs":true,"capabilities":false' "$out"
	case $out in *'"stdout": "0 '*) zero=1 ;; *) zero=0 ;; esac
	says "$who: never as uid 0" $zero . "$out"
	left=$(printf '%s' "$out" | sed -n 's/.*"stdout": "[0-9]* \(.*\)\/w\/user\\n".*/\1/p')
	says "$who: its directory was there" "$(is -n "$left")" . "$out"
	says "$who: its directory is gone" "$(is ! -e "$left")" . "$left"
	out=$(below -g r -e 'writeLines("a", "f"); x <- 41; x + as.numeric(readLines("f") == "a")')
	says "$who: R runs on the rung below" $? '^\[1\] 42$' "$out"
	out=$(below -g r -e 'readLines("/etc/passwd")')
	says "$who: R: a host file is refused" $(($? == 0)) "'/etc/passwd': Permission denied" "$out"
	# shellcheck disable=SC2016
	out=$(below -g sh -e 'echo in; cat /etc/passwd; echo x > /tmp/cordon-ladder; ls /; cd "$TMPDIR" && echo y > z && cat z; exit 3')
	says "$who: a shell script and its status" $(($? != 3)) '^in$' "$out"
	says "$who: a host file is refused" 0 '/etc/passwd: Permission denied' "$out"
	says "$who: writing outside is refused" 0 '/tmp/cordon-ladder: Permission denied' "$out"
	says "$who: the workspace is writable" 0 'y$' "$out" # a line of the other stream may have begun
	out=$(below -g sh --json -e 'if then')
	says "$who: a syntax error is one" $(($? == 0)) '"error_kind": "syntax"' "$out"
	out=$(below --json -e 'import socket; socket.socket()')
	says "$who: a socket is denied and explained" $(($? == 0)) '"target":"AF_INET","layer":"seccomp"' "$out"
	out=$(below --json --timeout 1s -e 'while True: pass')
	says "$who: a timeout is one" $(($? != 124)) '"error_kind": "timeout"' "$out"
	out=$(below --json --memory 64M -e 'x = bytearray(300 << 20)')
	says "$who: too much memory is that" $(($? == 0)) '"error_kind": "memory"' "$out"
}

# setsid, two forks, deaf to signals: dead all the same when the program returns, and the depth of a tree is no hiding place.
cleans_up() {
	mark=ladder$$${who:0:1} # the kernel keeps 15 characters of it
	out=$(below --timeout 20s -e "
import os, signal, time, ctypes
for i in range(8):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            ctypes.CDLL(None).prctl(15, b'$mark'[:15], 0, 0, 0)
            time.sleep(1)
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
                time.sleep(0.01)
        os._exit(0)
d = '.'
for i in range(600):
    os.mkdir('d')
    os.chdir('d')
os.mkdir('locked', 0)
time.sleep(1.5)
print(os.environ['HOME'])
")
	says "$who: a fork bomb comes to an end" $? "/w/user" "$out"
	says "$who: none of it is left" $(($(grep -l "^${mark:0:15}" /proc/[0-9]*/comm 2>/dev/null | wc -l) != 0)) . "$out"
	dir=$(printf '%s\n' "$out" | sed -n 's/^\(\/.*\)\/w\/user$/\1/p')
	says "$who: nor of its directory" "$(is ! -e "${dir:-/}")" . "$dir"
}

proves() {
	out=$(without_userns doctor)
	says "$who: doctor names the rung" $? "Rung: without namespaces" "$out"
	says "$who: doctor says what it lacks" 0 "no quota: fs_bytes and file_count are not enforced" "$out"
	out=$(without_userns doctor --prove --quick)
	says "$who: every attack is held or said to be lacking" $? ' 0 open, 0 broken' "$out"
	says "$who: what is lacking is counted" 0 '[5-9] are not held on the rung' "$out"
}

# An image that is not there is not "of another version".
images() {
	out=$(CORDON_POD=$reach/nothing "$CORDON" run -g pod -e 'echo ran' 2>&1)
	says "a pod image that is missing is told as missing" $(($? == 0)) "the pod image is missing: CORDON_POD names '$reach/nothing'.*make pod" "$out"
	out=$(CORDON_POD=nothing "$CORDON" run -g pod -e 'echo ran' 2>&1)
	says "a relative CORDON_POD is refused" $(($? == 0)) "not an absolute path" "$out"
	mkdir -p "$reach/half/bin"
	printf '#!/bin/sh\n' >"$reach/half/bin/cordon-pod"
	chmod 755 "$reach/half/bin/cordon-pod"
	out=$(CORDON_POD=$reach/half "$CORDON" run -g pod -e 'echo ran' 2>&1)
	says "half an image is incomplete" $(($? == 0)) "is incomplete: it has no file 'format'" "$out"
	echo other >"$reach/half/format"
	out=$(CORDON_POD=$reach/half "$CORDON" run -g pod -e 'echo ran' 2>&1)
	says "an image of another version says so" $(($? == 0)) "for another version of Cordon" "$out"
	out=$(CORDON_POD=$reach/nothing "$CORDON" doctor 2>&1)
	says "doctor says that it is missing" 0 "missing *pod *the pod image is missing" "$out"
}

images
for who in $users; do
	refused
	runs
	cleans_up
	proves
done

out=$(unshare -U -r sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"' sh "$CORDON" run --set $BELOW -e 1 2>&1)
root=$?
[ "$(id -u)" != 0 ] || says "never with the host's uid 0" $((root == 0)) "the host's uid 0" "$out"
out=$(unshare -U -r "$CORDON" run -e '1 + 2' 2>&1)
says "root of a user namespace only" $? '^3$' "$out"
out=$(unshare -U -r "$CORDON" run --json --set require+=cgroups -e '1' 2>&1)
status=$?
if [ "$(id -u)" = 0 ]; then # the host's root, by another name: its groups are ours
	says "required control groups that are ours" $status '"cgroups": *"v' "$out"
else
	says "required control groups that are not ours" $((status == 0)) "control group" "$out"
fi
tap_done
