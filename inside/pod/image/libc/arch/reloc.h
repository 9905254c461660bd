/* inside/pod/image/libc/arch/reloc.h - nothing is relocated at run time; only the name is asked
 * for. */
#define LDSO_ARCH "wasm32"
