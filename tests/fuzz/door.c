/* fuzz/door.c - random calls with random arguments at the pod's door; see pod/fuzz_door.c. */
#define WITH_LIBFUZZER
#include "../pod/fuzz_door.c" /* inside/pod */
