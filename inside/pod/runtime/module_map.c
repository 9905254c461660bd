/* inside/pod/runtime/module_map.c - maps an object of an added command. Every number in it is
 * checked first. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside/pod/runtime/module.h"

#define PAGE 4096ull
#define MAX_SEGMENTS 8
#define MAX_HEADERS 16
#define MAX_TAGS 64

struct segment {
	uint64_t at, file_end, end; /* addresses in the object; end: including its zeros */
	uint64_t offset;
	int prot;
};

struct object {
	int fd;
	uint64_t bytes;
	Elf64_Ehdr head;
	Elf64_Phdr headers[MAX_HEADERS];
	struct segment segments[MAX_SEGMENTS];
	size_t count;
	uint64_t span; /* of address space, whole pages */
	uint64_t dynamic, dynamic_bytes, relro, relro_bytes;
	uint64_t rela, rela_bytes;
	uint8_t *base;
	const char *why;
};

static int refuse(struct object *o, const char *why)
{
	o->why = why;
	return -ENOEXEC;
}

static uint64_t page_down(uint64_t n)
{
	return n & ~(PAGE - 1);
}

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* The segment that contains [at, at + len) with these rights, or NULL. from_file: without its
 * zeros. */
static const struct segment *holder(const struct object *o, uint64_t at, uint64_t len, int prot,
				    bool from_file)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct segment *s = &o->segments[i];
		uint64_t end = from_file ? s->file_end : s->end;

		if (at >= s->at && at <= end && len <= end - at && (s->prot & prot) == prot)
			return s;
	}
	return NULL;
}

static int read_headers(struct object *o)
{
	static const uint8_t ident[] = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT };
	struct stat st;
	const Elf64_Ehdr *h = &o->head;
	size_t bytes;

	if (fstat(o->fd, &st) || st.st_size < (off_t)sizeof *h)
		return refuse(o, "it is too short");
	o->bytes = (uint64_t)st.st_size;
	if (o->bytes > MODULE_SPAN)
		return refuse(o, "it is too large");
	if (pread(o->fd, &o->head, sizeof *h, 0) != (ssize_t)sizeof *h ||
	    memcmp(h->e_ident, ident, sizeof ident) != 0 || h->e_type != ET_DYN ||
	    h->e_machine != EM_X86_64 || h->e_phentsize != sizeof *o->headers)
		return refuse(o, "it is no object of cordon pod add");
	bytes = h->e_phnum * sizeof *o->headers;
	if (!h->e_phnum || h->e_phnum > MAX_HEADERS || h->e_phoff > o->bytes ||
	    bytes > o->bytes - h->e_phoff)
		return refuse(o, "its headers lie outside of it");
	if (pread(o->fd, o->headers, bytes, (off_t)h->e_phoff) != (ssize_t)bytes)
		return refuse(o, "its headers cannot be read");
	return 0;
}

/* Inside the file and inside the address space that an object may have. */
static bool is_inside(const struct object *o, const Elf64_Phdr *h)
{
	return h->p_filesz <= h->p_memsz && h->p_offset <= o->bytes &&
	       h->p_filesz <= o->bytes - h->p_offset && h->p_memsz <= MODULE_SPAN &&
	       h->p_vaddr <= MODULE_SPAN && h->p_vaddr + h->p_memsz <= MODULE_SPAN;
}

/* Follows the previous segment, starts at address 0, and its bytes can be mapped. */
static bool is_in_order(const struct object *o, const Elf64_Phdr *h)
{
	uint64_t at = page_down(h->p_vaddr);

	if ((h->p_vaddr - h->p_offset) % PAGE)
		return false;
	return o->count ? at >= page_up(o->segments[o->count - 1].end) : at == 0;
}

static int protection(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

static int add_segment(struct object *o, const Elf64_Phdr *h)
{
	struct segment s = { .at = h->p_vaddr,
			     .file_end = h->p_vaddr + h->p_filesz,
			     .end = h->p_vaddr + h->p_memsz,
			     .offset = h->p_offset,
			     .prot = protection(h->p_flags) };

	if (o->count == MAX_SEGMENTS)
		return refuse(o, "it has too many segments");
	if (!is_inside(o, h))
		return refuse(o, "a segment lies outside of it");
	if (!is_in_order(o, h))
		return refuse(o, "its segments overlap or are out of order");
	if ((s.prot & PROT_WRITE) && (s.prot & PROT_EXEC))
		return refuse(o, "a segment can be written and executed");
	if (s.end > s.file_end && !(s.prot & PROT_WRITE))
		return refuse(o, "a segment of zeros cannot be written");
	o->segments[o->count++] = s;
	o->span = page_up(s.end);
	return 0;
}

static int read_segments(struct object *o)
{
	for (size_t i = 0; i < o->head.e_phnum; i++) {
		const Elf64_Phdr *h = &o->headers[i];
		int r = 0;

		switch (h->p_type) {
		case PT_LOAD:
			r = h->p_memsz ? add_segment(o, h) : 0;
			break;
		case PT_DYNAMIC:
			o->dynamic = h->p_vaddr;
			o->dynamic_bytes = h->p_memsz;
			break;
		case PT_GNU_RELRO:
			o->relro = h->p_vaddr;
			o->relro_bytes = h->p_memsz;
			break;
		case PT_INTERP:
		case PT_TLS:
			r = refuse(o, "it wants more than an object may");
			break;
		default: /* notes, stack permissions, unwind tables: not used here */
			break;
		}
		if (r)
			return r;
	}
	if (!o->count || !o->dynamic_bytes || o->dynamic % 8)
		return refuse(o, "it has no segments");
	if (!holder(o, o->dynamic, o->dynamic_bytes, PROT_READ, true))
		return refuse(o, "its dynamic section lies outside of it");
	if (o->relro_bytes && !holder(o, o->relro, o->relro_bytes, PROT_WRITE, false))
		return refuse(o, "its constants lie outside of it");
	return 0;
}

static int map_segment(struct object *o, const struct segment *s)
{
	uint64_t from = page_down(s->at), file_end = page_up(s->file_end), end = page_up(s->end);
	const int how = MAP_PRIVATE | MAP_FIXED;
	bool has_file = s->file_end > s->at;

	if (has_file && mmap(o->base + from, file_end - from, s->prot, how, o->fd,
			     (off_t)page_down(s->offset)) == MAP_FAILED)
		return -errno;
	if (!has_file)
		file_end = from;
	if (end > file_end && mmap(o->base + file_end, end - file_end, s->prot, how | MAP_ANONYMOUS,
				   -1, 0) == MAP_FAILED)
		return -errno;
	if (has_file && (s->prot & PROT_WRITE))
		memset(o->base + s->file_end, 0, file_end - s->file_end);
	return 0;
}

static int map_segments(struct object *o)
{
	void *at =
		mmap(NULL, o->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		o->why = "there is no room for it";
		return -errno;
	}
	o->base = at;
	for (size_t i = 0; i < o->count; i++) {
		int r = map_segment(o, &o->segments[i]);

		if (r) {
			o->why = "it cannot be mapped: is its file system noexec?";
			return r;
		}
	}
	return 0;
}

/* Accepts only what needs no symbols and runs nothing. */
static int read_dynamic(struct object *o)
{
	const Elf64_Dyn *d = (const Elf64_Dyn *)(o->base + o->dynamic);
	size_t n = o->dynamic_bytes / sizeof *d;

	for (size_t i = 0; i < n && i < MAX_TAGS && d[i].d_tag != DT_NULL; i++) {
		switch (d[i].d_tag) {
		case DT_RELA:
			o->rela = d[i].d_un.d_ptr;
			break;
		case DT_RELASZ:
			o->rela_bytes = d[i].d_un.d_val;
			break;
		case DT_NEEDED:
		case DT_REL:
		case DT_RELR:
		case DT_JMPREL:
		case DT_TEXTREL:
		case DT_INIT:
		case DT_FINI:
		case DT_INIT_ARRAY:
		case DT_FINI_ARRAY:
			return refuse(o, "it wants more than an object may");
		default:
			break;
		}
	}
	return 0;
}

static int relocate(struct object *o)
{
	const Elf64_Rela *rela;

	if (!o->rela_bytes)
		return 0;
	if (o->rela % 8 || o->rela_bytes % sizeof *rela ||
	    !holder(o, o->rela, o->rela_bytes, PROT_READ, true))
		return refuse(o, "its relocations lie outside of it");
	rela = (const Elf64_Rela *)(o->base + o->rela);
	for (size_t i = 0; i < o->rela_bytes / sizeof *rela; i++) {
		Elf64_Rela r = rela[i];
		uint64_t value = (uint64_t)(uintptr_t)o->base + (uint64_t)r.r_addend;

		if (r.r_info != ELF64_R_INFO(0, R_X86_64_RELATIVE) || r.r_addend < 0 ||
		    (uint64_t)r.r_addend > o->span)
			return refuse(o, "a relocation leads outside of it");
		if (!holder(o, r.r_offset, sizeof value, PROT_WRITE, false))
			return refuse(o, "a relocation writes outside of it");
		memcpy(o->base + r.r_offset, &value, sizeof value);
	}
	return 0;
}

static int find_head(struct object *o)
{
	const struct module_head *head;
	uint64_t enter;

	if (!holder(o, o->head.e_entry, sizeof *head, PROT_READ, true) || o->head.e_entry % 8)
		return refuse(o, "its head lies outside of it");
	head = (const struct module_head *)(o->base + o->head.e_entry);
	if (memcmp(head->magic, MODULE_MAGIC, sizeof head->magic) != 0 ||
	    head->bytes != sizeof *head)
		return refuse(o, "it is no object of cordon pod add");
	if (head->abi != MODULE_ABI)
		return refuse(o, "it was made for another version: add it again");
	enter = (uint64_t)(uintptr_t)head->enter - (uint64_t)(uintptr_t)o->base;
	if (!holder(o, enter, 1, PROT_EXEC, true))
		return refuse(o, "its entry lies outside of its code");
	return 0;
}

/* Whole pages. What follows on the last page stays writable, as the linker planned. */
static int protect(struct object *o)
{
	uint64_t from = page_down(o->relro), to = page_down(o->relro + o->relro_bytes);

	if (o->relro_bytes && to > from && mprotect(o->base + from, to - from, PROT_READ))
		return -errno;
	return 0;
}

static int load(struct object *o)
{
	int r = read_headers(o);

	if (!r)
		r = read_segments(o);
	if (!r)
		r = map_segments(o);
	if (!r)
		r = read_dynamic(o);
	if (!r)
		r = relocate(o);
	if (!r)
		r = find_head(o);
	return r ? r : protect(o);
}

int module_map(int fd, struct module_object *ret, const char **ret_why)
{
	struct object o = { .fd = fd, .why = "it cannot be read" };
	int r = load(&o);

	if (r) {
		if (o.base)
			munmap(o.base, o.span);
		*ret_why = o.why;
		return r;
	}
	*ret = (struct module_object){ (const struct module_head *)(o.base + o.head.e_entry),
				       o.base, o.span };
	return 0;
}
