/* inside/pod/image/files/jq/jq_test.c - jq's own test mode is not part of the pod. */
typedef struct jq_state jq_state;
int jq_testsuite(int libdir, int verbose, int argc, char **argv)
{
	(void)libdir;
	(void)verbose;
	(void)argc;
	(void)argv;
	return 2;
}
