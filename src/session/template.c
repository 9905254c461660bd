/* session/template.c - see template.h. */
#include "session/template.h"

int template_get(enum guest_kind kind, const struct policy *p, struct template **ret,
		 struct cordon_error **reterr)
{
	(void)kind, (void)p, (void)ret;
	return err_set(reterr, CORDON_UNSUPPORTED, "templates");
}

struct template *template_put(struct template *t)
{
	(void)t;
	return NULL;
}

int template_fork(struct template *t, struct engine *e, struct cordon_error **reterr)
{
	(void)t, (void)e;
	return err_set(reterr, CORDON_UNSUPPORTED, "templates");
}
