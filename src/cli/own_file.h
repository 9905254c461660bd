/* cli/own_file.h - files of the user's configuration that decide what code may do. They and their
 * folder must belong to the user, and nobody else may write to them. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* $XDG_CONFIG_HOME/cordon/NAME or ~/.config/cordon/NAME. NULL: no variable says so, or out of
 * memory. */
char *own_file_folder(const char *name);
/* The text of a file of the folder. *ret stays NULL if there is none. is_private: nobody else may
 * read it either. */
int own_file_load(const char *folder, const char *name, bool is_private, char **ret,
		  struct cordon_error **reterr);
/* Creates or replaces it, for the user alone; makes the folder, too. */
int own_file_save(const char *folder, const char *name, const char *text,
		  struct cordon_error **reterr);
