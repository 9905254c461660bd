#!/bin/sh
# Installs Cordon from the folder of this script: ./install.sh [--prefix DIR] [--uninstall] (DESTDIR is honoured).
# The prefix is /usr/local. The list of what was installed is in PREFIX/share/cordon/installed, and --uninstall removes just that.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local
uninstall=
need=@glibc@

usage() {
	sed -n '2,3s/^# //p' "$0"
	exit "$1"
}

while [ $# -gt 0 ]; do
	case $1 in
	--prefix) [ $# -gt 1 ] || usage 2 >&2; prefix=$2 && shift ;;
	--prefix=*) prefix=${1#--prefix=} ;;
	--uninstall) uninstall=1 ;;
	-h | --help) usage 0 ;;
	*) usage 2 >&2 ;;
	esac
	shift
done
case $prefix in
/*) ;;
*) echo "install.sh: the prefix must begin with /: $prefix" >&2 && exit 2 ;;
esac
prefix=${prefix%/}
root=${DESTDIR:-}$prefix
list=$root/share/cordon/installed

if [ -n "$uninstall" ]; then
	[ -f "$list" ] || { echo "install.sh: nothing is installed in $root" >&2; exit 1; }
	while IFS= read -r file; do
		# The list is ours, but it never leads out of the prefix.
		case /$file/ in */../*) continue ;; esac
		rm -f "$root/$file"
	done <"$list"
	rm -f "$list"
	for dir in libexec/cordon/lib libexec/cordon share/cordon share/doc/cordon include/cordon; do
		rmdir "$root/$dir" 2>/dev/null || true
	done
	echo "Cordon is removed from $root."
	exit 0
fi

old() { # is version $1 older than $2?
	[ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -t. -k1,1n -k2,2n | head -n 1)" = "$1" ]
}
have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //')
if [ -z "$have" ] || old "$have" "$need"; then
	echo "install.sh: this machine has ${have:+glibc }${have:-no glibc}. The program runs, but its server, its gateway and" >&2
	echo "its remote connections need glibc $need." >&2
fi

mkdir -p "$root/share/cordon"
# What an earlier version had and this one has not would stay otherwise.
[ ! -f "$list" ] || DESTDIR=${DESTDIR:-} "$0" --prefix "$prefix" --uninstall >/dev/null
mkdir -p "$root/share/cordon"
escaped=$(printf '%s' "$prefix" | sed 's/[&|\\]/\\&/g')
(cd "$here" && find bin libexec lib include share ! -type d | LC_ALL=C sort) >"$list.new"
while IFS= read -r file; do
	mkdir -p "$root/$(dirname "$file")"
	rm -f "$root/$file"
	case $file in
	*.pc | *.service) sed "s|@prefix@|$escaped|" "$here/$file" >"$root/$file" ;;
	*) cp -P "$here/$file" "$root/$file" ;;
	esac
done <"$list.new"
mv "$list.new" "$list"
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ]; then
	case $prefix in /usr | /usr/local) ldconfig 2>/dev/null || true ;; esac
fi
echo "Cordon is in $root. Try: $prefix/bin/cordon doctor"
if [ -e /etc/apparmor.d/abi/4.0 ]; then
	echo "Ubuntu 24.04: as root, cp $root/share/cordon/apparmor.profile /etc/apparmor.d/cordon && apparmor_parser -r /etc/apparmor.d/cordon"
fi
