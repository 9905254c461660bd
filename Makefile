# The verbs of the project; Meson does the work. `make help` lists them.
# /usr/bin first: the system's Python and tools, whatever else the PATH brings.
export PATH := /usr/bin:/bin:$(PATH)
# Caches are kept there, also for whoever starts us without it.
ifeq ($(HOME),)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif
BUILD ?= build
CI ?=
NICE ?= nice

.DEFAULT_GOAL := all
.PHONY: all run test asan tsan lint format fuzz soak bench man install site dist dist-test pod pod-tests vm clean help fresh setup-core setup-test setup-lint

all: setup-core ## build the library and the program
	@tools/configure $(BUILD) $(if $(CI),-Dwerror=true)
	@$(NICE) ninja -C $(BUILD)

run: setup-core ## build the program and run a first one in the sandbox, or FILE=x.py
	@tools/configure $(BUILD) $(if $(CI),-Dwerror=true)
	@$(NICE) ninja -C $(BUILD) programs
	@$(BUILD)/cordon run $(if $(FILE),$(FILE),examples/first.py)

test: setup-test all pod-tests $(if $(CI),setup-lint asan tsan) ## set up, build, run all tests (CI=1: also sanitizers and lint)
	@tools/test $(if $(CI),--asan build-asan --tsan build-tsan --lint) $(BUILD)

fresh: ## both commands on bare Debian roots made for it (root; W='KIND... [-- COMMAND]')
	@tools/setup fresh
	@tools/fresh $(W)

vm: setup-test all ## behaviour and attacks on other kernels, in an emulator (an hour and more; W=WORD picks)
	@CORDON_NEEDS=strict BUILD="$$(realpath "$(BUILD)")" $(NICE) tests/vm/run --full $(W)

asan: setup-core ## build with AddressSanitizer and UBSan into build-asan
	@tools/configure build-asan -Db_sanitize=address,undefined
	@$(NICE) ninja -C build-asan

tsan: setup-core ## build with ThreadSanitizer into build-tsan
	@tools/configure build-tsan -Db_sanitize=thread
	@$(NICE) ninja -C build-tsan

lint: setup-lint all ## style, sizes, room order, static analysis
	@tools/lint

format: ## rewrite the sources in the house style
	@tools/format

fuzz: all ## fuzz every parser for SECONDS=60 each
	@for f in tests/fuzz/*.c; do n=$$(basename $$f .c); [ $$n = replay ] || tools/fuzz $$n -max_total_time=$(or $(SECONDS),60); done

soak: setup-test all pod-tests ## hours: everything at once, for SOAK_SECONDS=1800 each, under ASan and under TSan
	@$(NICE) tools/soak

bench: all ## measure; never a test
	@bench/run

man: all ## the man pages into $(BUILD)/man
	@$(NICE) ninja -C $(BUILD) man/man1

site: ## the pages as one HTML site with search, into build/site
	@command -v cmark-gfm >/dev/null || tools/setup dist
	@tools/site '$(BUILD)/site'

install: all ## into DESTDIR, prefix as set up
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir "$$(realpath -m "$(DESTDIR)")")
	@echo "Guest pod has an image of its own, which is not installed: 'make pod' builds it in $(BUILD)/pod;"
	@echo "copy that folder to libexec/cordon/pod beside the program's bin, or name it in the variable CORDON_POD."

dist: setup-core ## packages for others, into dist/ (Debian, tarball, pip, npm, R, OCI; W=KIND picks)
	@tools/setup guests dist
	@$(NICE) tools/dist $(if $(wildcard $(BUILD)/pod),--pod '$(BUILD)/pod') $(W)

dist-test: setup-core ## make them twice, compare, and install them on bare Debian roots (root)
	@tools/setup guests dist
	@$(NICE) tests/dist/check

pod: ## build the image of WebAssembly programs
	@$(NICE) tools/pod --out '$(BUILD)/pod'

pod-tests: all
	@$(NICE) tools/pod --tests --out '$(BUILD)/pod'

clean: ## remove the build folders
	@rm -rf build build-asan build-tsan build-fuzz build-lint build-dist

setup-core:
	@tools/setup core python

setup-test:
	@tools/setup core python guests tests

setup-lint:
	@tools/setup lint

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10
