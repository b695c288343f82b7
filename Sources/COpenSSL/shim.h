#ifndef COALESCED_COPENSSL_SHIM_H
#define COALESCED_COPENSSL_SHIM_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

extern long syscall(long number, ...);

// ---- The wire: how OpenSSL reads from and writes to one socket.
//
// A write never fails for lack of room in the kernel: the bytes that the kernel does not take wait in `rest`. So OpenSSL never asks for a write to
// be repeated, and what it has encrypted is never in doubt.
struct coalesced_wire {
    int descriptor;
    // The `errno` of the read or write that failed; 0 before.
    int read_error, write_error;
    // Whether the peer has ended its side of the stream.
    int has_ended;
    // How often OpenSSL may still read from the kernel before its caller gets the word again.
    int reads;
    // Whether another record follows at once. The kernel then sends several in one segment, and wakes the peer for all of them.
    int more_follows;
    // Bytes of `rest` from `rest_start` up to `rest_end` wait for the kernel.
    unsigned char *_Nullable rest;
    size_t rest_start, rest_end, rest_capacity;
    // Bytes that were read from the socket before it had a wire, from `early_start` up to `early_end`.
    unsigned char *_Nullable early;
    size_t early_start, early_end;
};

// More bytes wait only if a peer has many records sent to it, such as answers to key updates, and reads none.
enum { coalesced_most_rest = 256 << 10 };

// A call of OpenSSL returns only with bytes of the stream, or without more from the kernel. A peer that sends key updates without pause would
// hold a loop in it, so each call reads the kernel this often at most, some 16 KiB each time, and then says that it waits for the peer.
enum { coalesced_most_reads = 4 };

static inline size_t coalesced_wire_rest(const struct coalesced_wire *_Nonnull wire) { return wire->rest_end - wire->rest_start; }

static inline ssize_t coalesced_wire_send(struct coalesced_wire *_Nonnull wire, const void *_Nonnull bytes, size_t count) {
    int flags = MSG_NOSIGNAL | (wire->more_follows ? MSG_MORE : 0);
    ssize_t sent;
    do { sent = syscall(SYS_sendto, wire->descriptor, bytes, count, flags, NULL, 0); } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        wire->write_error = errno;
        return -1;
    }
    return sent < 0 ? 0 : sent;
}

// Writes what waits. Gives whether nothing waits any more.
static inline int coalesced_wire_flush(struct coalesced_wire *_Nonnull wire) {
    while (coalesced_wire_rest(wire) > 0) {
        ssize_t sent = coalesced_wire_send(wire, wire->rest + wire->rest_start, coalesced_wire_rest(wire));
        if (sent <= 0) return 0;
        wire->rest_start += (size_t)sent;
    }
    free(wire->rest);
    wire->rest = NULL;
    wire->rest_start = wire->rest_end = wire->rest_capacity = 0;
    return 1;
}

static inline int coalesced_wire_keep(struct coalesced_wire *_Nonnull wire, const void *_Nonnull bytes, size_t count) {
    size_t waiting = coalesced_wire_rest(wire);
    if (waiting + count > coalesced_most_rest) {
        wire->write_error = ENOBUFS;
        return 0;
    }
    if (wire->rest_capacity - wire->rest_end < count) {
        unsigned char *larger = malloc(waiting + count);
        if (larger == NULL) {
            wire->write_error = ENOMEM;
            return 0;
        }
        if (waiting > 0) memcpy(larger, wire->rest + wire->rest_start, waiting);
        free(wire->rest);
        wire->rest = larger;
        wire->rest_start = 0;
        wire->rest_end = waiting;
        wire->rest_capacity = waiting + count;
    }
    memcpy(wire->rest + wire->rest_end, bytes, count);
    wire->rest_end += count;
    return 1;
}

static inline int coalesced_bio_write(BIO *bio, const char *bytes, int count) {
    struct coalesced_wire *wire = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (wire->write_error != 0) return -1;
    ssize_t sent = 0;
    if (coalesced_wire_rest(wire) == 0) sent = coalesced_wire_send(wire, bytes, (size_t)count);
    if (sent < 0) return -1;
    if (sent < count && !coalesced_wire_keep(wire, bytes + sent, (size_t)(count - sent))) return -1;
    return count;
}

static inline int coalesced_bio_read(BIO *bio, char *bytes, int count) {
    struct coalesced_wire *wire = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t received;
    if (wire->early_start < wire->early_end) {
        size_t left = wire->early_end - wire->early_start;
        if (left > (size_t)count) left = (size_t)count;
        memcpy(bytes, wire->early + wire->early_start, left);
        wire->early_start += left;
        return (int)left;
    }
    if (wire->reads <= 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    wire->reads--;
    do { received = syscall(SYS_recvfrom, wire->descriptor, bytes, count, 0, NULL, NULL); } while (received < 0 && errno == EINTR);
    if (received == 0) wire->has_ended = 1;
    if (received < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) BIO_set_retry_read(bio);
        else wire->read_error = errno;
    }
    return (int)received;
}

static inline long coalesced_bio_control(BIO *bio, int command, long number, void *pointer) {
    (void)number;
    (void)pointer;
    struct coalesced_wire *wire = BIO_get_data(bio);
    switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return wire->has_ended;
    default: return 0;
    }
}

static inline BIO_METHOD *_Nullable coalesced_bio_method(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (method == NULL) return NULL;
    BIO_meth_set_write(method, coalesced_bio_write);
    BIO_meth_set_read(method, coalesced_bio_read);
    BIO_meth_set_ctrl(method, coalesced_bio_control);
    return method;
}

// Gives `ssl` a wire to `descriptor`; NULL if memory is short. The wire is freed after `ssl`, by `coalesced_wire_free`.
static inline struct coalesced_wire *_Nullable coalesced_wire_new(SSL *_Nonnull ssl, BIO_METHOD *_Nonnull method, int descriptor) {
    struct coalesced_wire *wire = calloc(1, sizeof *wire);
    BIO *bio = wire == NULL ? NULL : BIO_new(method);
    if (bio == NULL) {
        free(wire);
        return NULL;
    }
    wire->descriptor = descriptor;
    BIO_set_data(bio, wire);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    return wire;
}

// The next reads give these bytes first. Gives 0 if memory is short.
static inline int coalesced_wire_put_back(struct coalesced_wire *_Nonnull wire, const void *_Nullable bytes, size_t count) {
    if (count == 0) return 1;
    wire->early = malloc(count);
    if (wire->early == NULL) return 0;
    memcpy(wire->early, bytes, count);
    wire->early_end = count;
    return 1;
}

static inline void coalesced_wire_free(struct coalesced_wire *_Nonnull wire) {
    free(wire->early);
    free(wire->rest);
    free(wire);
}

// ---- Macros of OpenSSL, which Swift does not import.

// The settings that every context has. `read_ahead`: one system call brings a whole record, not first its five bytes of header.
// `RELEASE_BUFFERS`: an idle connection takes 15 KB, not 48.
static inline int coalesced_prepare_context(SSL_CTX *_Nonnull context, int minimum, int maximum) {
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_min_proto_version(context, minimum) && (maximum == 0 || SSL_CTX_set_max_proto_version(context, maximum));
}

static inline void coalesced_keep_sessions(SSL_CTX *_Nonnull context,
                                           int (*_Nonnull keep)(SSL *_Nullable ssl, SSL_SESSION *_Nullable session)) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep);
}

static inline long coalesced_set_groups(SSL_CTX *_Nonnull context, const char *_Nonnull list) {
    return SSL_CTX_set1_groups_list(context, (char *)list);
}

static inline long coalesced_set_automatic_dh(SSL_CTX *_Nonnull context) { return SSL_CTX_set_dh_auto(context, 1); }

static inline long coalesced_add_chain(SSL_CTX *_Nonnull context, X509 *_Nonnull certificate) {
    return SSL_CTX_add1_chain_cert(context, certificate);
}

static inline long coalesced_clear_chain(SSL_CTX *_Nonnull context) { return SSL_CTX_clear_chain_certs(context); }

static inline long coalesced_set_server_name(SSL *_Nonnull ssl, const char *_Nonnull name) { return SSL_set_tlsext_host_name(ssl, (char *)name); }

static inline BIO *_Nullable coalesced_memory(const void *_Nullable bytes, size_t count) { return BIO_new_mem_buf(bytes, (int)count); }

// The bytes that were written to a memory BIO.
static inline size_t coalesced_memory_bytes(BIO *_Nonnull bio, const char *_Nullable *_Nonnull bytes) {
    char *start = NULL;
    long count = BIO_get_mem_data(bio, &start);
    *bytes = start;
    return count > 0 ? (size_t)count : 0;
}

static inline int coalesced_reason(unsigned long code) { return ERR_GET_REASON(code); }
static inline int coalesced_library(unsigned long code) { return ERR_GET_LIB(code); }

static inline int coalesced_name_is_good(SSL *_Nullable ssl, int *_Nullable alert, void *_Nullable argument) {
    (void)ssl, (void)alert, (void)argument;
    return SSL_TLSEXT_ERR_OK;
}

// Acknowledges the names that clients ask for (RFC 6066, section 3). OpenSSL keeps a name with its session only if it was acknowledged:
// otherwise nobody knows it any more after that session was resumed in TLS 1.2.
static inline void coalesced_acknowledge_names(SSL_CTX *_Nonnull context) {
    SSL_CTX_set_tlsext_servername_callback(context, coalesced_name_is_good);
}

static inline int coalesced_ticket_keys(SSL_CTX *_Nonnull context,
                                        int (*_Nonnull callback)(SSL *_Nullable, unsigned char *_Nullable, unsigned char *_Nullable,
                                                                 EVP_CIPHER_CTX *_Nullable, EVP_MAC_CTX *_Nullable, int)) {
    return (int)SSL_CTX_set_tlsext_ticket_key_evp_cb(context, callback);
}

// A session ends with the certificate that its client has shown: the handshake is then a full one, in which the certificate is refused.
static inline SSL_TICKET_RETURN coalesced_use_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t count,
                                                     SSL_TICKET_STATUS status, void *argument) {
    (void)ssl, (void)name, (void)count, (void)argument;
    if (status == SSL_TICKET_EMPTY || status == SSL_TICKET_NO_DECRYPT) return SSL_TICKET_RETURN_IGNORE_RENEW;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_ABORT;
    X509 *peer = SSL_SESSION_get0_peer(session);
    if (peer != NULL && X509_cmp_current_time(X509_get0_notAfter(peer)) <= 0) return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

static inline int coalesced_check_tickets(SSL_CTX *_Nonnull context) {
    return SSL_CTX_set_session_ticket_cb(context, NULL, coalesced_use_ticket, NULL);
}

// Sets the key of a ticket's code to `count` bytes; HMAC with SHA-256.
static inline int coalesced_set_ticket_code(EVP_MAC_CTX *_Nonnull code, void *_Nonnull key, size_t count) {
    OSSL_PARAM parameters[3] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key, count),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(code, parameters);
}

// RFC 2253.
static const unsigned long coalesced_name_form = XN_FLAG_RFC2253;

// A certificate's names.
static inline int coalesced_names_count(const STACK_OF(GENERAL_NAME) *_Nullable names) { return sk_GENERAL_NAME_num(names); }
static inline const GENERAL_NAME *_Nullable coalesced_name_at(const STACK_OF(GENERAL_NAME) *_Nonnull names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}
static inline void coalesced_free_names(STACK_OF(GENERAL_NAME) *_Nullable names) { sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free); }
// Whether a certificate says where that of its issuer is (RFC 5280, section 4.2.2.1).
static inline int coalesced_names_issuer(X509 *_Nonnull certificate) {
    AUTHORITY_INFO_ACCESS *places = X509_get_ext_d2i(certificate, NID_info_access, NULL, NULL);
    int found = 0;
    for (int index = 0; index < sk_ACCESS_DESCRIPTION_num(places); index++) {
        if (OBJ_obj2nid(sk_ACCESS_DESCRIPTION_value(places, index)->method) == NID_ad_ca_issuers) found = 1;
    }
    AUTHORITY_INFO_ACCESS_free(places);
    return found;
}
static inline STACK_OF(X509_NAME) *_Nullable coalesced_subjects(void) { return sk_X509_NAME_new_null(); }
static inline int coalesced_add_subject(STACK_OF(X509_NAME) *_Nonnull subjects, X509_NAME *_Nullable name) {
    X509_NAME *copy = X509_NAME_dup(name);
    return copy != NULL && sk_X509_NAME_push(subjects, copy) > 0;
}

// Writes a certificate that has signed itself, and its key (ECDSA, P-256), in PEM form. `alternatives` as in x509v3_config(5),
// such as `DNS:localhost,IP:127.0.0.1`. Gives 0 after an error.
static inline int coalesced_self_signed(const char *_Nonnull name, const char *_Nonnull alternatives, long days,
                                        BIO *_Nonnull certificate, BIO *_Nonnull key_out) {
    static const struct { int kind; const char *value; } fixed[] = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, "serverAuth,clientAuth"},
    };
    int done = 0;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    X509 *made = X509_new();
    X509V3_CTX context;
    uint64_t serial;
    if (key == NULL || made == NULL || RAND_bytes((unsigned char *)&serial, sizeof serial) != 1) goto end;
    // A serial number is positive, and every program can read one of 63 bits.
    if (!X509_set_version(made, X509_VERSION_3) || !ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial >> 1 | 1)) goto end;
    // Clocks of machines differ a little.
    if (X509_gmtime_adj(X509_getm_notBefore(made), -3600) == NULL) goto end;
    if (X509_time_adj_ex(X509_getm_notAfter(made), (int)days, 0, NULL) == NULL) goto end;
    X509_NAME *subject = X509_get_subject_name(made);
    if (!X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0)) goto end;
    if (!X509_set_issuer_name(made, subject) || !X509_set_pubkey(made, key)) goto end;
    X509V3_set_ctx(&context, made, made, NULL, NULL, 0);
    for (size_t index = 0; index <= sizeof fixed / sizeof *fixed; index++) {
        int isFixed = index < sizeof fixed / sizeof *fixed;
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, isFixed ? fixed[index].kind : NID_subject_alt_name,
                                                        isFixed ? fixed[index].value : alternatives);
        if (extension == NULL) goto end;
        int added = X509_add_ext(made, extension, -1);
        X509_EXTENSION_free(extension);
        if (!added) goto end;
    }
    if (X509_sign(made, key, EVP_sha256()) == 0) goto end;
    done = PEM_write_bio_X509(certificate, made) && PEM_write_bio_PrivateKey(key_out, key, NULL, NULL, 0, NULL, NULL);
end:
    X509_free(made);
    EVP_PKEY_free(key);
    return done;
}

#endif
