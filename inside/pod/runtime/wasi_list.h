/* inside/pod/runtime/wasi_list.h - every function of WASI preview 1: its name, its parameters, who
 * answers. */
/* WASI(name, parameters): i is 32 bits, I is 64. A module asks by the order in this list, and
 * inside/pod/image/module/translate.js reads it: what is added goes to the end, and MODULE_ABI
 * changes with everything else. */

/* wasi.c: the program itself, time, randomness */
WASI(args_get, "ii")
WASI(args_sizes_get, "ii")
WASI(environ_get, "ii")
WASI(environ_sizes_get, "ii")
WASI(clock_res_get, "ii")
WASI(clock_time_get, "iIi")
WASI(proc_exit, "i")
WASI(proc_raise, "i")
WASI(sched_yield, "")
WASI(random_get, "ii")

/* wasi_fd.c: descriptors */
WASI(fd_advise, "iIIi")
WASI(fd_allocate, "iII")
WASI(fd_close, "i")
WASI(fd_datasync, "i")
WASI(fd_fdstat_get, "ii")
WASI(fd_fdstat_set_flags, "ii")
WASI(fd_fdstat_set_rights, "iII")
WASI(fd_filestat_get, "ii")
WASI(fd_filestat_set_size, "iI")
WASI(fd_filestat_set_times, "iIIi")
WASI(fd_pread, "iiiIi")
WASI(fd_prestat_get, "ii")
WASI(fd_prestat_dir_name, "iii")
WASI(fd_pwrite, "iiiIi")
WASI(fd_read, "iiii")
WASI(fd_readdir, "iiiIi")
WASI(fd_renumber, "ii")
WASI(fd_seek, "iIii")
WASI(fd_sync, "i")
WASI(fd_tell, "ii")
WASI(fd_write, "iiii")

/* wasi_path.c: names beneath a descriptor */
WASI(path_create_directory, "iii")
WASI(path_filestat_get, "iiiii")
WASI(path_filestat_set_times, "iiiiIIi")
WASI(path_link, "iiiiiii")
WASI(path_open, "iiiiiIIii")
WASI(path_readlink, "iiiiii")
WASI(path_remove_directory, "iii")
WASI(path_rename, "iiiiii")
WASI(path_symlink, "iiiii")
WASI(path_unlink_file, "iii")

/* wasi_poll.c: waiting */
WASI(poll_oneoff, "iiii")

/* wasi.c: what a pod does not have */
WASI(sock_accept, "iii")
WASI(sock_recv, "iiiiii")
WASI(sock_send, "iiiii")
WASI(sock_shutdown, "ii")
