/* cli/policy_file.c - see policy_file.h. */
#include "cli/policy_file.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/document.h"
#include "policy/public.h"

int policy_file_save_text(const char *text, const char *path, bool replaces,
			  struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_file_draft struct file_draft draft = { .fd = -1, .dir_fd = -1 };
	int r = file_draft_open(&draft, path, reterr);

	if (r < 0)
		return r;
	int failed = file_write_all(draft.fd, text, strlen(text));
	if (failed)
		return err_errno(reterr, -failed, "write '%s'", path);
	r = file_draft_publish(&draft, 0644, replaces, &e);
	if (r < 0 && cordon_error_errno(e) == EEXIST)
		return err_set(reterr, CORDON_EXISTS, "'%s' exists; -f replaces it", path);
	if (r < 0)
		return err_set(reterr, cordon_error_code(e), "write '%s': %s", path,
			       cordon_error_message(e));
	return 0;
}

int policy_file_save(const struct cordon_policy *p, const char *path, bool replaces,
		     struct cordon_error **reterr)
{
	if (p->p.secret_count)
		return err_set(reterr, CORDON_INVALID,
			       "the policy has secrets, which are not written to files: give them "
			       "in a policy file of their own");
	cleanup_json json_t *j = document_write_changes(&p->p);
	cleanup_free char *pretty = j ? json_text_pretty(j) : NULL;
	cleanup_free char *text = pretty ? str_printf("%s\n", pretty) : NULL;
	return text ? policy_file_save_text(text, path, replaces, reterr)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
}
