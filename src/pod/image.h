/* pod/image.h - the image's commands: the only things that exec starts. */
#ifndef POD_IMAGE_H
#define POD_IMAGE_H

#include "process.h"

/* Finds the files of the commands beneath the pod's root; 0 or a negative errno. */
int image_open(struct w2c_sys *p);
/* Lets only the commands of a comma-separated list be executed, which stays the caller's; names one
 * that the image does not have (it may be a tool of the host's). */
int image_allow(struct w2c_sys *p, const char *list, const char **ret_unknown);
const struct command *image_find(const char *name);
/* execve: returns only where it fails. */
int64_t image_exec(struct w2c_sys *p, uint64_t path, uint64_t argv, uint64_t envp);
/* Makes the arguments of the first program; 0 or a negative errno. */
int image_arguments(struct w2c_sys *p, char *const *argv, char *const *envp);
/* Chooses the first program by name or path, from strings of our own; a negative errno. */
int image_choose(struct w2c_sys *p, const char *path);
/* Closes what the program that ends has marked close-on-exec. */
void image_close_marked(const struct w2c_sys *p);

#endif
