# make run    builds the program and starts a demo on 127.0.0.1:8080
# make test   runs every test against the built program
# make build  leaves the program at .build/release/coalesced
# make deb        leaves a package for Debian and its kin at .build/deb/coalesced_VERSION_ARCH.deb
# make tarball    leaves the program, with what belongs to it, at .build/coalesced-VERSION-linux-ARCH.tar.gz, to be unpacked in /usr/local
# make install    puts the same into the system, without a package (as root): program, units, manual pages, completions, examples; the
#                 configuration and the rule for logrotate if there are none; the user that the unit names
# make uninstall  removes them again, except the configuration, the rule for logrotate and the user
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
VERSION = $(shell sed -n 's/.*static let current = "\(.*\)"/\1/p' Sources/coalesced/Coalesced.swift)
PACKAGES = libevent-dev libc-ares-dev libyaml-dev libnghttp2-dev libssl-dev pkg-config
# The servers and clients of the tests, each as PROGRAM:PACKAGE or PATH:PACKAGE.
TEST_PACKAGES = gunicorn:gunicorn uvicorn:uvicorn django-admin:python3-django node:nodejs puma:puma nginx:nginx-light \
                php:php-cli /usr/share/wordpress:wordpress mariadbd:mariadb-server redis-server:redis-server \
                openssl:openssl curl:curl javac:openjdk-17-jdk-headless pebble:pebble lego:lego certbot:certbot \
                /usr/lib/python3/dist-packages/requests:python3-requests
DESTDIR ?=
prefix ?= /usr
unitdir ?= $(prefix)/lib/systemd/system
STRIP ?= strip

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

.PHONY: run test build deb tarball lint format install uninstall dependencies test-packages browser package-tools bench bench-quick benchmark tools peers

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
SHARE = $(DESTDIR)$(prefix)/share
UNITS = $(DESTDIR)$(unitdir)
EXAMPLES = $(SHARE)/doc/coalesced/examples
BASH_COMPLETION = $(SHARE)/bash-completion/completions/coalesced
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_coalesced
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/coalesced.fish
CONFIGURATION = $(DESTDIR)/etc/coalesced/coalesced.yaml
ROTATION = $(DESTDIR)/etc/logrotate.d/coalesced

# Without symbols the program takes 19 MB instead of 39. If it cannot run here, as in an image for other processors, there are no
# completions.
install:
	@test -x "$(PROGRAM)" || { echo "there is no program yet: run \`make build\` first" >&2; exit 1; }
	install -D -m 0755 "$(PROGRAM)" "$(BINARY)"
	if command -v $(STRIP) >/dev/null; then $(STRIP) "$(BINARY)"; fi
	install -d "$(UNITS)"
	for unit in coalesced.service coalesced.socket; do \
	  sed 's|/usr/bin/coalesced|$(prefix)/bin/coalesced|' systemd/$$unit >"$(UNITS)/$$unit" && chmod 0644 "$(UNITS)/$$unit" || exit; \
	done
	install -D -m 0644 docs/coalesced.8 "$(SHARE)/man/man8/coalesced.8"
	install -D -m 0644 docs/coalesced.yaml.5 "$(SHARE)/man/man5/coalesced.yaml.5"
	for example in config/coalesced.yaml config/examples/*; do \
	  install -D -m 0644 "$$example" "$(EXAMPLES)/$${example##*/}" || exit; \
	done
	install -D -m 0755 config/deploy-hook "$(SHARE)/coalesced/deploy-hook"
	for completion in "bash:$(BASH_COMPLETION)" "zsh:$(ZSH_COMPLETION)" "fish:$(FISH_COMPLETION)"; do \
	  script=$$("$(PROGRAM)" --generate-completion-script "$${completion%%:*}") || continue; \
	  install -D -m 0644 /dev/null "$${completion#*:}" && printf '%s\n' "$$script" | sed '1{/^#!/d}' >"$${completion#*:}"; \
	done
	test -e "$(CONFIGURATION)" || install -D -m 0644 config/installed.yaml "$(CONFIGURATION)"
	test -e "$(ROTATION)" || install -D -m 0644 config/logrotate.conf "$(ROTATION)"
	test -n "$(DESTDIR)" || id coalesced >/dev/null 2>&1 || \
	  useradd --system --user-group --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin coalesced

uninstall:
	rm -f "$(BINARY)" "$(UNITS)/coalesced.service" "$(UNITS)/coalesced.socket"
	rm -f "$(SHARE)/man/man8/coalesced.8" "$(SHARE)/man/man5/coalesced.yaml.5"
	rm -f "$(BASH_COMPLETION)" "$(ZSH_COMPLETION)" "$(FISH_COMPLETION)"
	rm -rf "$(EXAMPLES)" "$(SHARE)/coalesced"

# Made in a copy, where dpkg-buildpackage leaves its files. debian/rules compiles nothing there: the program is built.
deb: build
	@$(call install_missing,dpkg-buildpackage:dpkg-dev dh:debhelper)
	packaging/deb "$(PROGRAM)" .build/deb

# Twice made of the same program it has the same bytes: its files are as old as the version.
TREE = coalesced-$(VERSION)-linux-$(shell uname -m)
tarball: build
	rm -rf .build/tarball
	$(MAKE) --no-print-directory install DESTDIR="$(CURDIR)/.build/tarball" prefix=/usr/local
	mv .build/tarball/usr/local ".build/tarball/$(TREE)"
	install -m 0644 LICENSE debian/copyright config/installed.yaml config/logrotate.conf ".build/tarball/$(TREE)/share/doc/coalesced"
	tar --create --sort=name --mode=u+rw,go=rX --owner=0 --group=0 --numeric-owner --mtime="$$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" \
	  --directory=.build/tarball "$(TREE)" | gzip -9n >".build/$(TREE).tar.gz"
	@echo ".build/$(TREE).tar.gz"

dependencies:
	@command -v $(SWIFT) >/dev/null || { \
	  echo "Swift 6.3 or later is needed: see https://www.swift.org/install" >&2; exit 1; }
	@if ! pkg-config --exists 'libevent_core >= 2.1.12' 'libcares >= 1.18.1' yaml-0.1 'libnghttp2 >= 1.52' 'openssl >= 3.0' 2>/dev/null; then \
	  command -v apt-get >/dev/null || { \
	    echo "libevent 2.1.12, c-ares 1.18.1, libyaml 0.2, nghttp2 1.52 and OpenSSL 3.0, or later, with their headers, and pkg-config are needed; install them and try again" >&2; exit 1; }; \
	  if [ "$$(id -u)" -eq 0 ]; then sudo=; else sudo=sudo; fi; \
	  echo "installing $(PACKAGES)"; \
	  $$sudo apt-get update; $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PACKAGES); \
	fi

# Servers run on core 0, load and origin on core 1.
BENCHMARK = taskset -c 1 "$(CURDIR)/.build/release/Benchmark"

bench: benchmark
	$(BENCHMARK) compare --write docs/benchmarks.md
	$(BENCHMARK) shared --write docs/benchmarks.md
	$(BENCHMARK) tls --write docs/benchmarks.md
	$(BENCHMARK) http2 --write docs/benchmarks.md
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
	@$(call install_missing,nginx:nginx varnishd:varnish haproxy:haproxy wrk:wrk h2load:nghttp2-client valgrind:valgrind objcopy:binutils curl:curl redis-server:redis-server)

test-packages:
	@$(call install_missing,$(TEST_PACKAGES))

# A browser is large: the test that drives one runs where it is installed, as in .ci/long.
browser:
	@$(call install_missing,chromium-headless-shell:chromium-headless-shell)

# What .ci/package uses.
package-tools:
	@$(call install_missing,dpkg-buildpackage:dpkg-dev dh:debhelper lintian:lintian mmdebstrap:mmdebstrap)

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
	  for service in nginx varnish varnishncsa haproxy mariadb redis-server; do \
	    case "$$missing " in *" $${service%ncsa}"[\ -]*) $$sudo systemctl disable $$service >/dev/null 2>&1 || true ;; esac; \
	  done; \
	  exit $$status; \
	fi
endef
