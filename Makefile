# make run    builds the program and starts a demo on 127.0.0.1:8080
# make test   runs every test against the built program
# make build  leaves the program at .build/release/coalesced
# make install    puts program, unit, manual page, completions, configuration and examples into the system (as root)
# make uninstall  removes them again, except the configuration
# make lint     reports code that swift-format would change
# make format   has swift-format change it
# make bench        compares with nginx, HAProxy and Varnish and writes docs/benchmarks.md: some twenty minutes
# make bench-quick  the most telling rows, in less than two minutes
# make tools        what .ci/count needs to count instructions per request
#
# Each installs missing packages (PACKAGES; `make test` also those of TEST_PACKAGES) itself. If a package list cannot be fetched,
# perhaps that of some other repository, it goes on.

SWIFT ?= swift
PROGRAM = $(CURDIR)/.build/release/coalesced
PACKAGES = libevent-dev libc-ares-dev libyaml-dev pkg-config
# The servers and clients of the end-to-end tests, each as PROGRAM:PACKAGE or PATH:PACKAGE.
TEST_PACKAGES = gunicorn:gunicorn uvicorn:uvicorn django-admin:python3-django node:nodejs puma:puma nginx:nginx-light \
                php:php-cli /usr/share/wordpress:wordpress mariadbd:mariadb-server \
                /usr/lib/python3/dist-packages/requests:python3-requests
DESTDIR ?=
prefix ?= /usr

# Swift's own libraries are linked into the program if the toolchain has static ones and there is a libstdc++ to link them with: it starts in
# half the time, and runs on machines without Swift. Without lld the linker would warn of a function in Foundation that is never called here.
# lld also optimizes across all modules when it links (LTO): a hit takes 10 % fewer instructions, a pass 11 %.
# `make STATIC= …` links them dynamically.
RUNTIME = $(shell $(SWIFT) -print-target-info 2>/dev/null | sed -n 's/.*"runtimeResourcePath": *"\(.*\)".*/\1/p')
STATIC = $(if $(and $(wildcard $(RUNTIME)_static/linux/libFoundationEssentials.a),$(wildcard $(RUNTIME)/../../bin/ld.lld),$(wildcard /usr/lib/gcc/*/*/libstdc++.*)),--static-swift-stdlib -Xswiftc -use-ld=lld --experimental-lto-mode full)
# Without colours: the compiler is told of them by an option, and what a terminal built, a pipe would build anew.
PLAIN = --no-color-diagnostics
RELEASE = $(SWIFT) build -c release $(PLAIN) $(STATIC)

FORMATTED = --recursive Package.swift Sources Tests

.PHONY: run test build lint format install uninstall dependencies test-packages bench bench-quick benchmark tools peers

run: build
	@exec "$(PROGRAM)" demo

# The end-to-end tests drive the program as it is used: the release build. They use real time, so they run after the unit tests,
# some of which keep every core busy on purpose.
test: build test-packages
	$(SWIFT) test $(PLAIN) --skip EndToEndTests
	COALESCED_PROGRAM="$(PROGRAM)" $(SWIFT) test --skip-build --filter EndToEndTests

build: dependencies
	$(RELEASE) --product coalesced

lint:
	$(SWIFT) format lint --strict $(FORMATTED)

format:
	$(SWIFT) format --in-place $(FORMATTED)

BINARY = $(DESTDIR)$(prefix)/bin/coalesced
UNIT = $(DESTDIR)$(prefix)/lib/systemd/system/coalesced.service
SOCKET = $(DESTDIR)$(prefix)/lib/systemd/system/coalesced.socket
MANUAL = $(DESTDIR)$(prefix)/share/man/man8/coalesced.8
BASH_COMPLETION = $(DESTDIR)$(prefix)/share/bash-completion/completions/coalesced
ZSH_COMPLETION = $(DESTDIR)$(prefix)/share/zsh/site-functions/_coalesced
EXAMPLES = $(DESTDIR)$(prefix)/share/doc/coalesced/examples
FISH_COMPLETION = $(DESTDIR)$(prefix)/share/fish/vendor_completions.d/coalesced.fish

# Without symbols the program takes 19 MB instead of 43. If it cannot run here, as in an image for other processors, there are no
# completions.
install:
	@test -x "$(PROGRAM)" || { echo "there is no program yet: run \`make build\` first" >&2; exit 1; }
	install -D -m 0755 "$(PROGRAM)" "$(BINARY)"
	if command -v strip >/dev/null; then strip "$(BINARY)"; fi
	install -D -m 0644 systemd/coalesced.service "$(UNIT)"
	install -D -m 0644 systemd/coalesced.socket "$(SOCKET)"
	install -D -m 0644 docs/coalesced.8 "$(MANUAL)"
	for example in config/examples/*; do install -D -m 0644 "$$example" "$(EXAMPLES)/$${example##*/}"; done
	for completion in "bash:$(BASH_COMPLETION)" "zsh:$(ZSH_COMPLETION)" "fish:$(FISH_COMPLETION)"; do \
	  script=$$("$(PROGRAM)" --generate-completion-script "$${completion%%:*}") || continue; \
	  install -D -m 0644 /dev/null "$${completion#*:}" && printf '%s\n' "$$script" >"$${completion#*:}"; \
	done
	test -e "$(DESTDIR)/etc/coalesced/coalesced.yaml" || \
	  install -D -m 0644 config/coalesced.yaml "$(DESTDIR)/etc/coalesced/coalesced.yaml"

uninstall:
	rm -f "$(BINARY)" "$(UNIT)" "$(SOCKET)" "$(MANUAL)" "$(BASH_COMPLETION)" "$(ZSH_COMPLETION)" "$(FISH_COMPLETION)"
	rm -rf "$(EXAMPLES)"

dependencies:
	@command -v $(SWIFT) >/dev/null || { \
	  echo "Swift 6.3 or later is needed: see https://www.swift.org/install" >&2; exit 1; }
	@if ! pkg-config --exists 'libevent_core >= 2.1.12' 'libcares >= 1.18.1' yaml-0.1 2>/dev/null; then \
	  command -v apt-get >/dev/null || { \
	    echo "libevent 2.1.12, c-ares 1.18.1 and libyaml 0.2, or later, with their headers, and pkg-config are needed; install them and try again" >&2; exit 1; }; \
	  if [ "$$(id -u)" -eq 0 ]; then sudo=; else sudo=sudo; fi; \
	  echo "installing $(PACKAGES)"; \
	  $$sudo apt-get update; $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PACKAGES); \
	fi

# Servers run on core 0, load and origin on core 1.
BENCHMARK = taskset -c 1 "$(CURDIR)/.build/release/Benchmark"

bench: benchmark
	$(BENCHMARK) compare --write docs/benchmarks.md
	$(BENCHMARK) micro --write docs/benchmarks.md
	$(BENCHMARK) single-flight --write Sources/Coalescing/Coalescing.docc/Comparison.md
	$(BENCHMARK) simulate --write docs/benchmarks.md

bench-quick: benchmark
	$(BENCHMARK) compare --quick

benchmark: tools peers
	$(RELEASE) --product BareResponder

# The load and the origin by themselves: enough for .ci/count.
tools: build
	$(RELEASE) --product Benchmark

# What coalesced is compared with, and what loads and counts.
peers:
	@$(call install_missing,nginx:nginx varnishd:varnish haproxy:haproxy wrk:wrk valgrind:valgrind objcopy:binutils curl:curl)

test-packages:
	@$(call install_missing,$(TEST_PACKAGES))

# Installs the packages of those programs (or files, by their paths), each PROGRAM:PACKAGE, that are not there. No service starts,
# now or at the next boot.
define install_missing
	missing=; \
	for pair in $(1); do \
	  test -e "$${pair%%:*}" || PATH="$$PATH:/usr/sbin" command -v "$${pair%%:*}" >/dev/null || missing="$$missing $${pair##*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
	  command -v apt-get >/dev/null || { echo "install these and try again:$$missing" >&2; exit 1; }; \
	  if [ "$$(id -u)" -eq 0 ]; then sudo=; else sudo=sudo; fi; \
	  echo "installing$$missing"; \
	  policy=/usr/sbin/policy-rc.d; \
	  if [ ! -e $$policy ]; then \
	    trap "$$sudo rm -f $$policy" EXIT; trap 'exit 130' INT TERM HUP; \
	    printf '#!/bin/sh\nexit 101\n' | $$sudo tee $$policy >/dev/null; $$sudo chmod 755 $$policy; \
	  fi; \
	  $$sudo apt-get update; \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$missing; status=$$?; \
	  for service in nginx varnish varnishncsa haproxy mariadb; do \
	    case "$$missing " in *" $${service%ncsa}"[\ -]*) $$sudo systemctl disable $$service >/dev/null 2>&1 || true ;; esac; \
	  done; \
	  exit $$status; \
	fi
endef
