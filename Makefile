# Builds, checks and demonstrates the whole tree; `make help` lists the targets.
# Variables: CC, SAN=address,undefined|thread (own build folder), CRASH=1 (with crash points, own build folder), WERROR=1, V=1 (print commands), DESTDIR, PREFIX.

ifeq ($(origin CC),default)
CC       := gcc
endif
# What was compiled before, in whatever folder, is taken from there; CCACHE= compiles anew. Several hundred test programs are linked faster by gold.
CCACHE   := $(if $(findstring ccache,$(CC)),,$(shell command -v ccache))
TEST_LD  := $(if $(shell command -v ld.gold),-fuse-ld=gold)
PREFIX   ?= /usr/local
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
SAN      ?=
comma    := ,
CRASH    ?=
OUT      := build/$(notdir $(CC))$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(CRASH),-crash)
Q        := $(if $(V),,@)

# ---- flags -------------------------------------------------------------------------------------------------------
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes -Wpointer-arith \
  -Wcast-qual -Wcast-align -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough -Wconversion \
  -Wno-sign-conversion -Wnull-dereference -Wno-missing-field-initializers
ifneq ($(findstring gcc,$(notdir $(CC))),)
WARN += -Wlogical-op -Wduplicated-cond
endif
ifneq ($(WERROR),)
WARN += -Werror
endif
ifeq ($(SAN),)
OPT := -O2 -g -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection
ifneq ($(findstring gcc,$(notdir $(CC))),)
OPT += -ftrivial-auto-var-init=zero
endif
else
OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all
endif
PKGS     := libcjson libcurl libmicrohttpd libnghttp2 openssl yaml-0.1 zlib
NODE_PKGS := libnftables
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
TEST_LIBS  := $(PKG_LIBS) $(shell pkg-config --libs check 2>/dev/null)
CFLAGS   ?=
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -I. -I$(OUT) $(PKG_CFLAGS) $(WARN) $(OPT) -fno-common -fPIE -pthread $(if $(CRASH),-DCRASH_POINTS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -pthread $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
# What has no main() of its own: with clang's fuzzer (SAN=fuzzer-no-link,...) its main() comes from there, else from our replay driver.
FUZZ_MAIN = $(if $(findstring fuzzer,$(SAN)),-fsanitize=fuzzer,$(OUT)/tests/fuzz/driver.o)

# ---- the tree: one archive per folder, in link order (a folder may use those after it) -------------------------------
LAYERS := apiserver apiserver/http reconcile apiserver/registry apiserver/auth admission node apiserver/kube openapi storage apiserver/base
lib     = $(OUT)/lib/$(subst /,-,$(1)).a
LIBS   := $(foreach l,$(LAYERS),$(call lib,$(l)))
src_of  = $(filter-out %/main.c,$(wildcard $(1)/*.c)) $(if $(filter openapi,$(1)),$(wildcard openapi/kinds/*.c))
obj     = $(patsubst %.c,$(OUT)/%.o,$(1))
SERVER := $(OUT)/sandbox-apiserver
NODE   := $(OUT)/sandbox-node
PAUSE  := $(OUT)/sandbox-pause

define layer_rule
$(call lib,$(1)): $(call obj,$(call src_of,$(1)))
endef
$(foreach l,$(LAYERS),$(eval $(call layer_rule,$(l))))

UNIT_SRC := $(shell find tests/unit tests/http -name '*_test.c' 2>/dev/null | sort)
# What has one thread only needs no thread sanitizer.
THREADLESS := tests/unit/admission/% tests/unit/openapi/% \
  $(patsubst %,tests/unit/base/%_test.c,arena buf duration err file flags json map mem quantity rand regex str url yaml)
UNIT_BIN := $(patsubst %.c,$(OUT)/%,$(if $(findstring -thread,$(OUT)),$(filter-out $(THREADLESS),$(UNIT_SRC)),$(UNIT_SRC)))
FUZZ_SRC := $(filter-out tests/fuzz/driver.c,$(wildcard tests/fuzz/*.c))
FUZZ_BIN := $(patsubst %.c,$(OUT)/%,$(FUZZ_SRC))
TEST_LIB := $(call obj,$(wildcard tests/lib/*.c))
FUNC_SRC := $(wildcard tests/func/*.c tests/scale/*.c tests/bench/*.c)
FUNC_BIN := $(patsubst %.c,$(OUT)/%,$(FUNC_SRC))
VERSIONED := $(shell grep -rlw --include='*.c' VERSION apiserver node reconcile) # alone are told it, for it changes with each commit
OTHER_SRC := apiserver/main.c node/main.c $(UNIT_SRC) $(FUZZ_SRC) tests/fuzz/driver.c $(wildcard tests/lib/*.c) $(FUNC_SRC) $(wildcard hack/*.c)
DEPS := $(patsubst %.c,$(OUT)/%.d,$(foreach l,$(LAYERS),$(call src_of,$(l))) $(OTHER_SRC))

.DEFAULT_GOAL := all
.PHONY: all check check-san test soak run run-detached run-stop cluster-demo contract items ui-screenshot fuzz-check fuzz tidy format layers install clean help units list-units fuzz-targets func-targets deps
.DELETE_ON_ERROR:
.SECONDARY:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

all: $(SERVER) $(NODE) $(PAUSE) ## build sandbox-apiserver, sandbox-node and what it gives to Pods

$(SERVER): $(OUT)/apiserver/main.o $(LIBS)
	@echo "  LINK  $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(OUT)/apiserver/main.o $(LIBS) $(PKG_LIBS)

$(NODE): $(OUT)/node/main.o $(foreach l,node apiserver/kube apiserver/base,$(call lib,$(l)))
	@echo "  LINK  $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS) $(shell pkg-config --libs $(NODE_PKGS))

# The first process of every Pod: static, for its image holds nothing else.
$(PAUSE): hack/images/pause.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) -O2 -static -s -o $@ $<

$(OUT)/lib/%.a:
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcs $@ $^

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CCACHE) $(CC) $(ALL_CFLAGS) $(if $(filter $(VERSIONED),$<),-DVERSION='"$(VERSION)"') -MMD -MP -c -o $@ $<

# The page's files are in the program.
$(OUT)/apiserver/http/ui.o: $(wildcard ui/*)

# A test links the archive of the folder it mirrors and everything below; unused archives cost nothing.
$(OUT)/tests/unit/%_test: $(OUT)/tests/unit/%_test.o $(TEST_LIB) $(LIBS)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LD) -o $@ $< $(TEST_LIB) $(LIBS) $(TEST_LIBS)
$(OUT)/tests/http/%_test: $(OUT)/tests/http/%_test.o $(TEST_LIB) $(LIBS)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LD) -o $@ $< $(TEST_LIB) $(LIBS) $(TEST_LIBS)
$(FUNC_BIN): $(OUT)/%: $(OUT)/%.o $(LIBS)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LD) -o $@ $< $(LIBS) $(PKG_LIBS)
$(OUT)/tests/fuzz/%: $(OUT)/tests/fuzz/%.o $(OUT)/tests/fuzz/driver.o $(LIBS)
	$(Q)$(CC) $(ALL_LDFLAGS) $(TEST_LD) -o $@ $< $(FUZZ_MAIN) $(LIBS) $(PKG_LIBS)
$(OUT)/hack/gen-shape: $(OUT)/hack/gen-shape.o $(call lib,apiserver/base)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)
$(OUT)/hack/print-crd: $(OUT)/hack/print-crd.o $(call lib,openapi) $(call lib,apiserver/base)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

units: $(UNIT_BIN)
list-units:
	@printf '%s\n' $(UNIT_BIN)
fuzz-targets: $(FUZZ_BIN)
func-targets: $(FUNC_BIN) $(OUT)/hack/print-crd

check: deps layers ## layers, calls, unit and HTTP tests, functional tests, corpus replay (minutes; for every change)
	$(Q)$(MAKE) --no-print-directory WERROR=1 all units fuzz-targets func-targets
	$(Q)tests/run check $(OUT)
check-san: deps ## unit and HTTP tests under address+undefined, then thread sanitizer
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined WERROR=1 units && tests/run units build/$(notdir $(CC))-address-undefined
	$(Q)$(MAKE) --no-print-directory SAN=thread WERROR=1 units && tests/run units build/$(notdir $(CC))-thread
functional: deps ## what is asked of a real cluster, of a server without one and a simulated node (minutes; no root)
	$(Q)$(MAKE) --no-print-directory WERROR=1 all
	$(Q)tests/compat/clients make && tests/run standalone $(OUT)
test: deps ## everything automated, on a real cluster too; ends in `N passed, N failed, N skipped`
	$(Q)tests/run all
soak: deps ## a thousand claimers against three servers each of whose leaders is killed after 5 s, 20 times (half an hour)
	$(Q)$(MAKE) --no-print-directory WERROR=1 all func-targets
	$(Q)ROUNDS=20 SERVER=$(SERVER) bash tests/scale/claims.sh
contract: deps ## each numbered check of the Kubernetes API contract on a real cluster, as a table
	$(Q)$(MAKE) --no-print-directory WERROR=1 all func-targets
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined WERROR=1 all
	$(Q)tests/contract/run
run: ## without a cluster: installs and builds what is missing, then server, node, a pool, a claim, a command in a Sandbox
	$(Q)$(if $(FOLDER),RUN_FOLDER=$(FOLDER)) hack/run
run-detached: ## the same, and leaves server and node running
	$(Q)$(if $(FOLDER),RUN_FOLDER=$(FOLDER)) hack/run detached
run-stop: ## ends them, with containers, networks and mounts (PURGE=1: and removes what they have stored)
	$(Q)$(if $(FOLDER),RUN_FOLDER=$(FOLDER)) hack/run $(if $(PURGE),purge,stop)
cluster-demo: deps ## a real cluster: up, install, one Sandbox, one command in it
	$(Q)hack/cluster-demo
ui-screenshot: ## a picture of the page at /ui/, as build/ui.png (needs chromium: hack/deps page)
	$(Q)$(MAKE) --no-print-directory all
	$(Q)SERVER=$(SERVER) UI_PICTURE=build/ui.png python3 tests/ui/page.py && echo build/ui.png
items: deps ## what the tests say of each item of the controllers' contract and of each field report (AREA=I: those alone)
	$(Q)$(MAKE) --no-print-directory WERROR=1 $$(tests/items --programs $(AREA:%=--area %) | sed 's|^|$(OUT)/|')
	$(Q)tests/items --out $(OUT) $(AREA:%=--area %)
fuzz-check: fuzz-targets ## replay each fuzz target's corpus
	$(Q)tests/run fuzz $(OUT)
fuzz: ## search for new inputs with clang's fuzzer, every target for SECONDS=3600
	$(Q)hack/fuzz $(or $(SECONDS),3600)
tidy: deps ## clang-tidy, cppcheck and gcc -fanalyzer
	$(Q)hack/tidy
format: ## clang-format all C files in place
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | grep -v '\.gen\.' | xargs clang-format -i
layers: ## who includes whom, and which calls we do not make
	$(Q)hack/check-layers && hack/check-calls
install: all ## binaries, manifests and man pages below $(DESTDIR)$(PREFIX)
	install -Dm755 -t $(DESTDIR)$(PREFIX)/bin $(SERVER) $(NODE)
	install -Dm755 -t $(DESTDIR)$(PREFIX)/libexec/agent-sandbox $(PAUSE)
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man8 docs/sandbox-apiserver.8 docs/sandbox-node.8
	install -d $(DESTDIR)$(PREFIX)/share/agent-sandbox && cp -r manifests examples $(DESTDIR)$(PREFIX)/share/agent-sandbox/
clean: ## remove what was built here (not the cached Kubernetes programs)
	rm -rf build
deps: ## install missing Debian packages (as root; else says which)
	$(Q)hack/deps

-include $(DEPS)
