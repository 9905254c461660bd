# Ubuntu 23.10 and later give user namespaces only to programs with a profile that allows them. Cordon makes its
# sandboxes of them; this profile allows them and restricts nothing else.
# Additions of this machine belong into /etc/apparmor.d/local/cordon.
abi <abi/4.0>,
include <tunables/global>

profile cordon /{usr,usr/local}/{bin/cordon,libexec/cordon/cordon-*} flags=(unconfined) {
  userns,

  include if exists <local/cordon>
}
