/* cli/transfer.h - copies files into and out of a session, and saves rich outputs. */
#pragma once

#include <cordon/cordon.h>

#include "base/json.h"
#include "cli/option.h"

/* Copies each --file HOST:GUEST. 0 or a negative code. */
int transfer_in(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr);
/* Copies each --out GUEST:HOST. skips_names: one without a colon is something else. */
int transfer_out(const struct cli *c, struct cordon_session *s, bool skips_names,
		 struct cordon_error **reterr);
/* A file, or a directory with all in it; host links below it and special files are skipped, with a
 * line on stderr. Each file appears under its name when it is complete. */
int transfer_put(const struct cli *c, struct cordon_session *s, const char *host, const char *guest,
		 struct cordon_error **reterr);
/* A directory's target must be new. */
int transfer_get(const struct cli *c, struct cordon_session *s, const char *guest, const char *host,
		 struct cordon_error **reterr);
/* Saves the result's outputs as files in dir (created if missing); prints one line on stderr for
 * each. */
int transfer_outputs(const struct cli *c, struct cordon_result *r, const char *dir,
		     struct cordon_error **reterr);
/* Saves one output of a result as dir/output-NUMBER.ENDING (dir is created if missing). *ret_path:
 * the file's name, to be freed. */
int transfer_output(const char *dir, size_t number, const json_t *output, char **ret_path,
		    struct cordon_error **reterr);
