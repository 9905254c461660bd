/* What cppcheck must know of jansson, whose headers it does not read. */
#define json_array_foreach(a, i, v) \
	for (i = 0; i < json_array_size(a) && (v = json_array_get(a, i)); i++)
#define json_object_foreach(o, k, v) for (k = json_first(o); k && (v = json_object_get(o, k)); k = json_next(o, k))
#define json_object_foreach_safe(o, n, k, v) json_object_foreach(o, k, v)
