# SPDX-License-Identifier: MIT
#
# make            build everything into build/
# make demo       install what is missing, build, capture a database, replay it three ways, compare
# make check      install what is missing, build, run every test
# make bench      timed figures, as ratios in one run
#
# A new engine, importer, exporter, recorder or test is a new file: nothing here changes. One that
# needs a library adds one PKG_ line below.

VERSION := 0.1

BUILD   ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG   ?= clang
PKGCONF ?= pkg-config
PREFIX  ?= /usr/local
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes \
           -Wwrite-strings -Wformat=2 -Wundef -Wno-unused-parameter
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DIOTAPE_VERSION='"$(VERSION)"' \
             -I. -I$(BUILD)/gen $(WARN) -fno-strict-aliasing -pthread $(BPF_DEFS) $(CFLAGS)

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
# V=1 shows the command lines
Q = $(if $(V),,@)
said = $(if $(V),,@echo '  $(1) $@')

# ---- libraries -------------------------------------------------------------------------------
# Needed: the build stops without them. make deps installs them.
NEED := zlib jansson libarchive
# One file each: it compiles without its library and says so (HAVE_LIB).
PKG_io_uring := liburing
PKG_ring := liburing
PKG_sqe := liburing
PKG_ioloop := liburing
PKG_unit_ring := liburing
PKG_libaio   := libaio
PKG_with_bpf := libbpf
PKG_with_block := libbpf
PKG_bpf_loader := libbpf
PKG_witness  := libbpf
# Debian's libaio has no .pc file: found by its header.
HEADER_libaio := libaio.h
LIBS_libaio   := -laio

need_libs := $(shell $(PKGCONF) --libs $(NEED) 2>/dev/null)
need_cflags := $(shell $(PKGCONF) --cflags $(NEED) 2>/dev/null)

# pkg NAME -> its libraries, empty when absent
pkg_libs = $(if $(HEADER_$(1)),$(shell echo '\#include <$(HEADER_$(1))>' | $(CC) -E -xc - >/dev/null 2>&1 && echo '$(LIBS_$(1))'),$(shell $(PKGCONF) --libs $(1) 2>/dev/null))
# WITHOUT="liburing libbpf" builds as if they were absent (CI does)
WITHOUT ?=
with_pkg := $(patsubst PKG_%,%,$(filter PKG_%,$(.VARIABLES)))
$(foreach p,$(sort $(foreach n,$(with_pkg),$(PKG_$(n)))),$(eval LIBS_OF_$(p) := $(if $(filter $(p),$(WITHOUT)),,$(call pkg_libs,$(p)))))
have_names := $(foreach n,$(with_pkg),$(if $(LIBS_OF_$(PKG_$(n))),$(n)))
bpf_names := with_% bpf_% witness
# librt: POSIX AIO lives there before glibc 2.34.
engine_libs := $(sort $(foreach n,$(filter-out $(bpf_names),$(have_names)),$(LIBS_OF_$(PKG_$(n))))) -lrt
capture_libs := $(sort $(foreach n,$(filter $(bpf_names),$(have_names)),$(LIBS_OF_$(PKG_$(n)))))

# ---- sources ---------------------------------------------------------------------------------
src_of = $(sort $(wildcard $(1)/*.c))
obj_of = $(patsubst %.c,$(BUILD)/%.o,$(1))

traces_src  := $(call src_of,traces)
engines_src := $(call src_of,engines)
convert_src := $(filter-out convert/main.c,$(call src_of,convert))
replay_src  := $(filter-out replay/main.c replay/compare_main.c,$(call src_of,replay))
bpf_src     := $(sort $(wildcard capture/*.bpf.c tests/bench/*.bpf.c))
preload_src := $(sort $(wildcard capture/preload_*.c))
capture_src := $(filter-out capture/main.c $(bpf_src) $(preload_src),$(call src_of,capture))

# engines/ files that are not engines
ENGINE_CORE := engine clock pool fault blocking ring sqe thread_limit
engine_names   := $(filter-out $(ENGINE_CORE),$(patsubst engines/%.c,%,$(engines_src)))
importer_names := $(patsubst convert/from_%.c,%,$(filter convert/from_%.c,$(convert_src)))
exporter_names := $(patsubst convert/to_%.c,%,$(filter convert/to_%.c,$(convert_src)))
recorder_names := $(patsubst capture/with_%.c,%,$(filter capture/with_%.c,$(capture_src)))

programs := $(foreach p,capture convert replay compare,$(BUILD)/iotape-$(p))
preload  := $(if $(preload_src),$(BUILD)/libiotape-preload.so)
man      := $(sort $(wildcard */*.[158]))

have_main = $(if $(wildcard $(2)),$(BUILD)/iotape-$(1))
all_programs := $(call have_main,capture,capture/main.c) $(call have_main,convert,convert/main.c) \
                $(call have_main,replay,replay/main.c) $(call have_main,compare,replay/compare_main.c)

.PHONY: all
all: $(all_programs) $(preload) $(BUILD)/iotape

$(BUILD)/iotape: iotape
	@mkdir -p $(@D)
	install -m 755 $< $@

# ---- tables written from the file names --------------------------------------------------------
# $(1) file, $(2) names. Rewritten only when the names change.
define registry
$$(BUILD)/gen/$(1): FORCE
	@mkdir -p $$(@D)
	@printf '$$(foreach n,$(2),REGISTER($$(n))\n)' | sed 's/^ *//' >$$@.new
	@if cmp -s $$@.new $$@; then rm $$@.new; else mv $$@.new $$@; fi
endef
$(eval $(call registry,engines.def,$(engine_names)))
$(eval $(call registry,importers.def,$(importer_names)))
$(eval $(call registry,exporters.def,$(exporter_names)))
$(eval $(call registry,recorders.def,$(recorder_names)))
.PHONY: FORCE
FORCE:
tables := $(foreach t,engines importers exporters recorders,$(BUILD)/gen/$(t).def)

# ---- rules -----------------------------------------------------------------------------------
$(BUILD)/%.o: %.c | $(tables)
	@mkdir -p $(@D)
	$(call said,CC  )
	$(Q)$(CC) $(ALL_CFLAGS) $(need_cflags) $(if $(filter $(notdir $*),$(have_names)),-DHAVE_LIB=1,-DHAVE_LIB=0) \
	    $(if $(filter $*.bpf.c,$(bpf_src)),-DBPF_OBJECT='"$(BUILD)/$*.bpf.o"') \
	    -MMD -MP -c -o $@ $<

$(BUILD)/%.pic.o: %.c
	@mkdir -p $(@D)
	$(call said,CC  )
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize%,$(ALL_CFLAGS)) -fPIC -fvisibility=hidden -fexceptions -ftls-model=initial-exec -MMD -MP -c -o $@ $<

# The registries hold names only, so the objects that include them follow the table files.
$(BUILD)/engines/engine.o: $(BUILD)/gen/engines.def
$(BUILD)/convert/importer.o: $(BUILD)/gen/importers.def
$(BUILD)/convert/exporter.o: $(BUILD)/gen/exporters.def
$(BUILD)/capture/recorder.o: $(BUILD)/gen/recorders.def

# A recorder's BPF object is embedded with .incbin; without clang or libbpf it says so at run time.
# The kernel's user headers need the architecture's folder, which clang leaves out for this target.
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -ffreestanding -Wall -I. -I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)
bpf_arch := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
$(BUILD)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	$(call said,BPF )
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(bpf_arch) -MMD -MP -c -o $@ $<
have_clang := $(if $(filter clang,$(WITHOUT)),,$(shell command -v $(CLANG) 2>/dev/null))
ifneq ($(and $(have_clang),$(LIBS_OF_libbpf)),)
$(foreach b,$(bpf_src),$(eval $(BUILD)/$(b:.bpf.c=.o): $(BUILD)/$(b:.c=.o)))
$(foreach b,$(bpf_src),$(eval $(BUILD)/$(b:.bpf.c=.o): BPF_DEFS := -DHAVE_BPF=1))
endif

define archive
$$(BUILD)/lib$(1).a: $(call obj_of,$(2))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(eval $(call archive,trace,$(traces_src)))
$(eval $(call archive,engine,$(engines_src)))
$(eval $(call archive,convert,$(convert_src)))
$(eval $(call archive,replay,$(replay_src)))
$(eval $(call archive,capture,$(capture_src)))

LINK = $(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^)
$(BUILD)/iotape-convert: $(BUILD)/convert/main.o $(BUILD)/libconvert.a $(BUILD)/libtrace.a
	$(call said,LINK)
	$(Q)$(LINK) $(need_libs) -lm
$(BUILD)/iotape-replay: $(BUILD)/replay/main.o $(BUILD)/libreplay.a $(BUILD)/libengine.a $(BUILD)/libtrace.a
	$(call said,LINK)
	$(Q)$(LINK) $(engine_libs) $(need_libs) -lm
$(BUILD)/iotape-compare: $(BUILD)/replay/compare_main.o $(BUILD)/libreplay.a $(BUILD)/libengine.a $(BUILD)/libtrace.a
	$(call said,LINK)
	$(Q)$(LINK) $(engine_libs) $(need_libs) -lm
$(BUILD)/iotape-capture: $(BUILD)/capture/main.o $(BUILD)/libcapture.a $(BUILD)/libtrace.a
	$(call said,LINK)
	$(Q)$(LINK) $(capture_libs) $(need_libs) -lm
$(BUILD)/libiotape-preload.so: $(patsubst %.c,$(BUILD)/%.pic.o,$(preload_src))
	$(call said,LINK)
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize%,$(ALL_CFLAGS)) $(LDFLAGS) -shared -o $@ $^ -ldl

# ---- tests -----------------------------------------------------------------------------------
test_src := $(sort $(wildcard tests/unit_*.c tests/conform_*.c))
fuzz_src := $(sort $(wildcard tests/fuzz_*.c))
prog_src := $(filter-out $(bpf_src),$(sort $(wildcard tests/prog_*.c tests/bench/*.c)))
test_bin := $(patsubst %.c,$(BUILD)/%,$(test_src))
fuzz_bin := $(patsubst %.c,$(BUILD)/%,$(fuzz_src))
prog_bin := $(patsubst %.c,$(BUILD)/%,$(prog_src))
all_libs := $(BUILD)/libreplay.a $(BUILD)/libengine.a $(BUILD)/libconvert.a $(BUILD)/libcapture.a $(BUILD)/libtrace.a
all_ext  := $(engine_libs) $(capture_libs) $(need_libs) -lm -ldl

$(test_bin): $(BUILD)/%: $(BUILD)/%.o $(all_libs)
	$(call said,LINK)
	$(Q)$(LINK) $(all_ext) -lcmocka
# A fuzz target defines LLVMFuzzerTestOneInput; in make check a plain driver runs it over tests/corpus.
FUZZ_MAIN ?= $(BUILD)/tests/driver_corpus.o
$(fuzz_bin): $(BUILD)/%: $(BUILD)/%.o $(FUZZ_MAIN) $(all_libs)
	$(call said,LINK)
	$(Q)$(LINK) $(all_ext)
$(prog_bin): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/libtrace.a
	$(call said,LINK)
	$(Q)$(LINK) $(engine_libs) $(capture_libs) $(need_libs) -lm

.PHONY: tests check check-run check-layers deps demo bench asan tsan install clean
tests: all $(test_bin) $(fuzz_bin) $(prog_bin)

deps:
	@.ci/deps

# Sub-makes, because the libraries that deps installs are looked for when make starts.
check: deps
	@$(MAKE) --no-print-directory check-run
check-run: tests check-layers
	@tests/run $(BUILD)

demo: deps
	@$(MAKE) --no-print-directory all
	@tests/demo $(BUILD)

bench: deps
	@$(MAKE) --no-print-directory tests
	@tests/bench/run $(BUILD)

asan:
	$(MAKE) BUILD=$(BUILD)/asan CFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer' check-run
tsan:
	$(MAKE) BUILD=$(BUILD)/tsan CFLAGS='-O1 -g -fsanitize=thread' tests
	tests/run $(BUILD)/tsan tsan

check-layers:
	@tests/layers .

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/iotape
	install -m 755 $(all_programs) iotape $(DESTDIR)$(PREFIX)/bin
	$(if $(preload),install -m 755 $(preload) $(DESTDIR)$(PREFIX)/lib/iotape)
	for m in $(man); do d=$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}; install -d $$d && install -m 644 $$m $$d || exit 1; done

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' -not -path '$(BUILD)/*san/*' 2>/dev/null)
