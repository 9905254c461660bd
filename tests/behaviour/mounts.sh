#!/bin/bash
# Writable live mounts: files of the directory's owner belong to the sandbox, files of other users do not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${CORDON:=$here/../../build/cordon}"
# shellcheck source=tests/harness/tap.sh
. "$here/../harness/tap.sh"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir "$dir/project"
echo old >"$dir/project/file"
chmod 600 "$dir/project/file"

run() {
	"$CORDON" run --set "mounts=$dir/project:/mnt/project:rw" "$@" 2>&1
}

write="f = open('/mnt/project/file', 'a'); f.write('new'); f.close(); open('/mnt/project/made', 'w').close(); import os; os.stat('/mnt/project/file').st_uid"
if [ "$(id -u)" = 0 ]; then
	out=$(run -e "$write")
	says "what belongs to root is not given to code" $(($? == 0)) "belongs to root" "$out"
	says "and nothing was written" 0 '^old$' "$(cat "$dir/project/file")"
	chmod 1777 "$dir/project"
	out=$(run -e "open('/mnt/project/anybody', 'w').close()")
	says "a directory of root's that anybody may write in is written in" $? . "ran $out"
	says "as the sandbox" 0 '^2100[0-9]*$' "$(stat -c %u "$dir/project/anybody")"
	chmod 755 "$dir/project"
	chown -R 4242:4343 "$dir/project"
	echo other >"$dir/project/other"
	chown 4244 "$dir/project/other"
	chmod 600 "$dir/project/other"
	out=$(run -e "$write")
	says "another user's directory is written" $? '^1000$' "$out"
	says "what was made belongs to that user" 0 '^4242 4343$' "$(stat -c '%u %g' "$dir/project/made")"
	says "what was there still does" 0 '^4242$' "$(stat -c %u "$dir/project/file")"
	out=$(run -e "open('/mnt/project/other').read()")
	says "a third user's file is not readable" $(($? == 0)) "Permission denied" "$out"
	out=$(run -g sh -e 'echo "#!/bin/sh" > /mnt/project/p; chmod 4755 /mnt/project/p; /mnt/project/p')
	says "nothing there may be executed" $(($? == 0)) "Permission denied" "$out"
	chown -R 2100000001 "$dir/project"
	out=$(run -e "$write")
	says "so is what was another sandbox's" $? '^1000$' "$out"
else
	out=$(run -e "$write")
	says "the own directory is written" $? '^1000$' "$out"
	says "what was made is one's own" 0 "^$(id -u)\$" "$(stat -c %u "$dir/project/made")"
fi
tap_done
