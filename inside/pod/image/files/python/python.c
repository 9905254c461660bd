/* inside/pod/image/files/python/python.c - CPython's main, and the warm one that copies are resumed from. */
#define Py_BUILD_CORE 1
#include "Python.h"
#include "pycore_initconfig.h"
#include "pycore_moduleobject.h"
#include "pycore_gc.h"
#include "pycore_interp.h"
#include "pycore_pystate.h"

#include <cordon-door.h>
#include <signal.h>

int __pod_checkpoint(void);
int __pod_arguments(char ***ret_argv);
extern char **environ;

enum { ASK = 0, COLD = 2 }; /* of POD_CHECKPOINT; taking one is in libc */

/* What the warm interpreter cannot pretend to have been started with. */
static int needs_cold(int argc, char **argv)
{
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, "PYTHON", 6) && strncmp(*e, "PYTHONPATH=", 11) &&
		    strncmp(*e, "PYTHONDONTWRITEBYTECODE=", 24))
			return 1;
	if (argc < 2 || argv[1][0] != '-')
		return argc < 2; /* reading from standard input may be interactive */
	if (!strcmp(argv[1], "-c") || !strcmp(argv[1], "-m"))
		return argc < 3;
	return 1;
}

static PyObject *environment; /* what os.environ keeps its bytes in */

static int find_environment(void)
{
	PyObject *os = PyImport_ImportModule("os");
	PyObject *map = os ? PyObject_GetAttrString(os, "environ") : NULL;

	environment = map ? PyObject_GetAttrString(map, "_data") : NULL;
	return environment ? 0 : -1;
}

static int refresh_environment(void)
{
	PyDict_Clear(environment);
	for (char **e = environ; *e; e++) {
		char *equals = strchr(*e, '=');
		PyObject *name, *value;

		if (!equals)
			continue;
		name = PyBytes_FromStringAndSize(*e, equals - *e);
		value = PyBytes_FromString(equals + 1);
		if (!name || !value || PyDict_SetDefault(environment, name, value) == NULL)
			return -1;
		Py_DECREF(name);
		Py_DECREF(value);
	}
	return 0;
}

/* Streams anew: the warm ones had nothing behind them. The old ones are kept, or their ends would
 * cost each copy something. */
static const char streams[] =
	"import sys, io, os, re, json, functools, collections, runpy, zlib, time\n"
	"old = [sys.stdin, sys.stdout, sys.stderr]\n"
	"def start():\n"
	"    def make(fd, mode, errors):\n"
	"        try:\n"
	"            os.fstat(fd)\n"
	"        except OSError:\n"
	"            return None\n"
	"        raw = io.FileIO(fd, mode, closefd=False)\n"
	"        tty = raw.isatty()\n"
	"        raw.name = ('<stdin>', '<stdout>', '<stderr>')[fd]\n"
	"        buf = io.BufferedReader(raw) if mode == 'r' else io.BufferedWriter(raw)\n"
	"        text = io.TextIOWrapper(buf, 'utf-8', errors, newline=None if mode == 'r' else '\\n',\n"
	"                                line_buffering=tty or fd == 2)\n"
	"        text.mode = mode\n"
	"        return text\n"
	"    sys.stdin = sys.__stdin__ = make(0, 'r', 'strict')\n"
	"    sys.stdout = sys.__stdout__ = make(1, 'w', 'strict')\n"
	"    sys.stderr = sys.__stderr__ = make(2, 'w', 'backslashreplace')\n"
	"    path = os.environ.get('PYTHONPATH')\n"
	"    home = os.environ.get('HOME')\n"
	"    user = home and '%s/.local/lib/python%d.%d/site-packages' % (home, *sys.version_info[:2])\n"
	"    if user and os.path.isdir(user):\n"
	"        import site\n"
	"        site.USER_SITE, site.USER_BASE = user, home + '/.local'\n"
	"        site.addsitedir(user)\n"
	"    if path:\n"
	"        sys.path[0:0] = [p for p in path.split(':')]\n"
	"    if os.environ.get('PYTHONDONTWRITEBYTECODE'):\n"
	"        sys.dont_write_bytecode = True\n"
	"def try_out():\n"
	"    for i in range(20):\n"
	"        start()\n"
	"        old.extend((sys.stdin, sys.stdout, sys.stderr))\n"
	"        exec(compile('print(1)\\nimport os', '<string>', 'exec'), {'__name__': '__main__'})\n"
	"    sys.stdout.flush()\n"
	"    import gc\n"
	"    gc.collect()\n"
	"    gc.freeze()\n";

static PyObject *start;

/* The function that makes them, compiled and run in: a copy only calls it. In a scope of its own: a
 * program must not find imports in its namespace that it has not made. */
static int prepare_start(void)
{
	PyObject *scope = PyDict_New(), *done = NULL;

	if (scope && !PyDict_SetItemString(scope, "__builtins__", PyEval_GetBuiltins()))
		done = PyRun_String(streams, Py_file_input, scope, scope);
	Py_XDECREF(done);
	start = done ? PyDict_GetItemString(scope, "start") : NULL;
	done = start ? PyObject_CallNoArgs(PyDict_GetItemString(scope, "try_out")) : NULL;
	Py_XDECREF(done);
	return done ? 0 : -1; /* the scope stays */
}

static int call_start(void)
{
	PyObject *done = PyObject_CallNoArgs(start);

	Py_XDECREF(done);
	return done ? 0 : -1;
}

static int set_string(PyConfig *config, wchar_t **field, const char *value)
{
	PyStatus status = PyConfig_SetBytesString(config, field, value);

	return PyStatus_Exception(status) ? -1 : 0;
}

/* What reading the command line would have put into the configuration. */
static int apply_arguments(int argc, char **argv)
{
	PyConfig *config = (PyConfig *)_PyInterpreterState_GetConfig(_PyInterpreterState_GET());
	PyObject *list = PyList_New(0), *whole = PyList_New(0);
	int first = 1, r = 0;

	if (!strcmp(argv[1], "-c")) {
		size_t n = strlen(argv[2]);
		char *text = malloc(n + 2);

		if (!text)
			return -1;
		memcpy(text, argv[2], n);
		strcpy(text + n, "\n");
		r = set_string(config, &config->run_command, text);
		free(text);
		first = 2;
	} else if (!strcmp(argv[1], "-m")) {
		r = set_string(config, &config->run_module, argv[2]);
		first = 2;
	} else {
		r = set_string(config, &config->run_filename, argv[1]);
	}
	if (first == 2)
		argv[2] = argv[1]; /* sys.argv[0] is the option */
	if (r || PyStatus_Exception(PyConfig_SetBytesArgv(config, argc - first, argv + first)))
		return -1;
	for (Py_ssize_t i = 0; i < config->argv.length; i++) {
		PyObject *word = PyUnicode_FromWideChar(config->argv.items[i], -1);

		if (!word || PyList_Append(list, word) || PyList_Append(whole, word))
			return -1;
		Py_DECREF(word);
	}
	PySys_SetObject("orig_argv", whole);
	return PySys_SetObject("argv", list);
}

static int is_warm;
static Py_ssize_t warm_modules; /* how many the copy began with */

/* The program's own namespace first, then what it has imported, the last one first. */
static void clear_modules(PyObject *main)
{
	PyObject *all = PyDict_Values(PyImport_GetModuleDict());

	_PyModule_Clear(main);
	_PyGC_CollectNoFail(_PyThreadState_GET());
	for (Py_ssize_t i = all ? PyList_GET_SIZE(all) : 0; i-- > warm_modules;) {
		PyObject *module = PyList_GET_ITEM(all, i);

		if (PyModule_Check(module) && module != main)
			_PyModule_Clear(module);
	}
	Py_XDECREF(all);
	PyErr_Clear();
}

/* Called where finalization would clear every module: only what came with the program is, so that
 * its objects end as they should; the rest goes with the process. */
int pod_finalize(void)
{
	static const char *const streams[] = { "stdout", "stderr" };
	PyObject *module = is_warm ? PyImport_AddModule("__main__") : NULL;

	if (!module)
		return 0;
	clear_modules(module);
	for (int i = 0; i < 2; i++) {
		PyObject *stream = PySys_GetObject(streams[i]);
		PyObject *r = stream && stream != Py_None ?
				      PyObject_CallMethod(stream, "flush", NULL) :
				      NULL;

		Py_XDECREF(r);
		PyErr_Clear();
	}
	return 1;
}

/* A ^C ends the program by the signal, as it does later: a shell must see that. */
static int fail_start(void)
{
	if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
		PyErr_Clear();
		signal(SIGINT, SIG_DFL);
		raise(SIGINT);
	}
	PyErr_Print();
	return 1;
}

static int warm(char **argv)
{
	PyConfig config;
	PyStatus status;
	int argc;

	PyConfig_InitPythonConfig(&config);
	config.parse_argv = 0;
	status = PyConfig_SetBytesString(&config, &config.program_name, "/usr/bin/python3");
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	if (PyStatus_Exception(status))
		return 1;
	PyConfig_Clear(&config);
	if (find_environment() || prepare_start())
		return 1;
	warm_modules = PyDict_GET_SIZE(PyImport_GetModuleDict());
	if (__pod_checkpoint() != 1)
		return 1;
	is_warm = 1;
	argc = __pod_arguments(&argv);
	if (needs_cold(argc, argv))
		__pod_door(POD_CHECKPOINT, COLD, 0, 0, 0, 0, 0);
	if (refresh_environment() || call_start() || apply_arguments(argc, argv))
		return fail_start();
	return Py_RunMain();
}

int main(int argc, char **argv)
{
	if (__pod_door(POD_CHECKPOINT, ASK, 0, 0, 0, 0, 0) == 1)
		return warm(argv);
	return Py_BytesMain(argc, argv);
}
