/* SPDX-License-Identifier: MIT */
/* The preload recorder: starts the command with the shim in it and takes what its rings hold.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "capture/image.h"
#include "capture/program.h"
#include "capture/recorder.h"
#include "capture/ring.h"
#include "capture/session.h"

#define SHIM_NAME "libiotape-preload.so"
#define LOOK_MS   4 /* a ring of 16384 records at 200,000 ops/s is full after 80 */
#define EVENTS    64
#define BACKLOG   4096

struct preload {
    struct session *session;
    int listen_fd, epoll_fd;
    struct image *images;
    unsigned int sample; /* one stream in so many is recorded */
    int *callers; /* connections whose message has not come yet, in their order */
    size_t caller_count, caller_room;
    bool stopped;
    char shim[PATH_MAX];
    char env[128];
};

/* ---- where the shim is ------------------------------------------------------------------- */

/* Beside the program (a build folder), or in ../lib/iotape (installed). */
static int find_shim(char *path, size_t room)
{
    static const char *const places[] = {"/" SHIM_NAME, "/../lib/iotape/" SHIM_NAME};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (length < 0)
        return -errno;
    self[length] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (snprintf(path, room, "%s%s", self, places[i]) >= (int)room)
            continue;
        if (access(path, R_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

static int preload_probe(char *reason, size_t reason_size, char *fix, size_t fix_size)
{
    char path[PATH_MAX];
    int err = find_shim(path, sizeof(path));

    if (err) {
        snprintf(reason, reason_size,
                 "%s is neither beside iotape-capture nor in ../lib/iotape", SHIM_NAME);
        snprintf(fix, fix_size, "build it with make, or install it with make install");
        return err;
    }
    /* The dynamic linker splits LD_PRELOAD there. */
    if (path[strcspn(path, " :\t\n")]) {
        snprintf(reason, reason_size, "the path of %s has a blank or a colon in it", path);
        snprintf(fix, fix_size, "move or install iotape elsewhere");
        return -EINVAL;
    }
    return 0;
}

static int preload_accepts(const struct capture_scope *scope, struct diag *diag)
{
    char path[PATH_MAX];
    const char *obstacle;

    if (!scope->command)
        return diag_set(diag, -EINVAL,
                        "recorder preload records only a command that it starts "
                        "(-- CMD); bpf can attach to what runs already");
    obstacle = program_obstacle(program_look(scope->command[0], 0, path, sizeof(path)));
    if (obstacle)
        return diag_set(diag, -EOPNOTSUPP,
                        "recorder preload cannot see into %s: it is %s; "
                        "recorder bpf can",
                        path, obstacle);
    return 0;
}

/* ---- open and close ---------------------------------------------------------------------- */

static void preload_close(void *state)
{
    struct preload *preload = state;

    if (!preload)
        return;
    while (preload->images) {
        struct image *image = preload->images;

        preload->images = image->next;
        image_free(image);
    }
    for (size_t i = 0; i < preload->caller_count; i++)
        close(preload->callers[i]);
    free(preload->callers);
    if (preload->listen_fd >= 0)
        close(preload->listen_fd);
    if (preload->epoll_fd >= 0)
        close(preload->epoll_fd);
    free(preload);
}

/* An abstract socket: it has no file, and goes with us. Its name is not to be guessed. */
static int preload_listen(struct preload *preload)
{
    const struct capture_scope *scope = session_scope(preload->session);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    uint64_t ring_bytes = 65536, nonce;
    int length;

    while (ring_bytes < scope->ring_bytes)
        ring_bytes *= 2;
    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
        return -EIO;
    length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "iotape-%016llx",
                      (unsigned long long)nonce);
    snprintf(preload->env, sizeof(preload->env), "%s:%llu:%u", address.sun_path + 1,
             (unsigned long long)ring_bytes,
             (scope->all_fds ? RING_ENV_ALL_FDS : 0u) |
                 (scope->content ? RING_ENV_CONTENT : 0u));
    preload->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    preload->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (preload->listen_fd < 0 || preload->epoll_fd < 0 ||
        bind(preload->listen_fd, (const struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) < 0 ||
        listen(preload->listen_fd, BACKLOG) < 0 ||
        epoll_ctl(preload->epoll_fd, EPOLL_CTL_ADD, preload->listen_fd, &event) < 0)
        return -errno;
    return 0;
}

static int preload_open(struct session *session, void **ret_state)
{
    struct preload *preload = calloc(1, sizeof(*preload));
    int err;

    if (!preload)
        return diag_errno(session_diag(session), -ENOMEM, "recorder preload");
    preload->session = session;
    preload->sample = session_scope(session)->sample;
    preload->listen_fd = preload->epoll_fd = -1;
    err = find_shim(preload->shim, sizeof(preload->shim));
    if (!err)
        err = preload_listen(preload);
    if (!err) /* that files were mapped is noted, what is done through a mapping is not seen */
        err = session_meta(session, TRACE_META_CANNOT_TELL, "mmap");
    if (err) {
        diag_errno(session_diag(session), err, "recorder preload");
        preload_close(preload);
        return err;
    }
    *ret_state = preload;
    return 0;
}

/* The child is a single thread, so setenv is safe there. */
static int preload_child(void *state)
{
    struct preload *preload = state;
    const char *other = getenv("LD_PRELOAD");
    char text[2 * PATH_MAX];

    if (snprintf(text, sizeof(text), "%s%s%s", preload->shim, other && *other ? ":" : "",
                 other ? other : "") >= (int)sizeof(text))
        return -ENAMETOOLONG;
    if (setenv("LD_PRELOAD", text, 1) < 0 || setenv(RING_ENV, preload->env, 1) < 0)
        return -errno;
    return 0;
}

/* ---- hellos ------------------------------------------------------------------------------ */

static struct image *find_image(struct preload *preload, uint64_t id)
{
    struct image *image = preload->images;

    while (image && image->id != id)
        image = image->next;
    return image;
}

static int add_image(struct preload *preload, const struct ring_hello *hello, pid_t pid,
                     int memfd)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct image *image;
    int err;

    /* The same process again: it has executed another program, the old image is no more. */
    for (image = preload->images; image; image = image->next)
        if (image->pid == pid)
            image->ended = true;
    err = image_new(&image, hello, pid, memfd);
    if (err)
        return err;
    image->next = preload->images;
    preload->images = image;
    image->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    event.data.ptr = image;
    if (image->pidfd < 0)
        image->ended = true; /* gone already; what it wrote is here */
    else if (epoll_ctl(preload->epoll_fd, EPOLL_CTL_ADD, image->pidfd, &event) < 0)
        return -errno;
    return 0;
}

/* One message with one descriptor; anything else is not from the shim. */
static int receive_hello(int sock, struct ring_hello *hello, int *ret_memfd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {hello, sizeof(*hello)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *part;
    ssize_t got = recvmsg(sock, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    int fd = -1;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    part = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
        part->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(part), sizeof(int));
    if (got != sizeof(*hello) || fd < 0 || hello->magic != RING_MAGIC ||
        hello->version != RING_VERSION) {
        if (fd >= 0)
            close(fd);
        return -EBADMSG;
    }
    *ret_memfd = fd;
    return 0;
}

static void take_hello(struct preload *preload, const struct ring_hello *hello, pid_t pid,
                       int memfd)
{
    struct image *image = find_image(preload, hello->image);
    int err = -EBADMSG;

    if (hello->area == RING_PROCESS && !image)
        err = add_image(preload, hello, pid, memfd);
    else if (hello->area == RING_THREAD && image)
        err = image_add_ring(image, preload->session, hello, memfd, preload->sample);
    if (err) {
        session_lost(preload->session, "not-attached", -1, 1);
        session_note(preload->session, "process %ld could not be attached: %s", (long)pid,
                     strerror(-err));
    }
}

/* False while the message is still on its way: the shim connects and sends in two calls, and
 * may be kept from the second for as long as the machine likes. */
static bool hear_caller(struct preload *preload, int sock)
{
    struct ring_hello hello;
    struct ucred peer;
    socklen_t peer_bytes = sizeof(peer);
    int memfd, err = receive_hello(sock, &hello, &memfd);

    if (err == -EAGAIN)
        return false;
    if (err)
        return true;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0)
        take_hello(preload, &hello, peer.pid, memfd);
    close(memfd);
    return true;
}

/* A process sends one message after the other, so hearing callers in their order hears of each
 * process before its threads. */
static int accept_all(struct preload *preload)
{
    size_t kept = 0;
    int sock;

    while ((sock = accept4(preload->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >=
           0) {
        if (preload->caller_count == preload->caller_room) {
            size_t room = preload->caller_room ? preload->caller_room * 2 : 64;
            int *callers = realloc(preload->callers, room * sizeof(*callers));

            if (!callers) {
                close(sock);
                return diag_errno(session_diag(preload->session), -ENOMEM, "recorder preload");
            }
            preload->callers = callers;
            preload->caller_room = room;
        }
        preload->callers[preload->caller_count++] = sock;
    }
    for (size_t i = 0; i < preload->caller_count; i++) {
        if (hear_caller(preload, preload->callers[i]))
            close(preload->callers[i]);
        else
            preload->callers[kept++] = preload->callers[i];
    }
    preload->caller_count = kept;
    return 0;
}

/* ---- polling ----------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int drain_images(struct preload *preload)
{
    uint64_t now = now_ns();
    int taken = 0;

    for (struct image **at = &preload->images; *at;) {
        struct image *image = *at;
        int got = image_drain(image, preload->session, now);

        if (got < 0)
            return got;
        taken += got;
        if (image->ended && got == 0) {
            int err = image_finish(image, preload->session);

            *at = image->next;
            image_free(image); /* closing the pidfd takes it out of the epoll */
            if (err)
                return err;
        } else {
            at = &image->next;
        }
    }
    return taken;
}

static int preload_poll(void *state, int timeout_ms)
{
    struct preload *preload = state;
    struct epoll_event events[EVENTS];
    int count, taken;

    count = epoll_wait(preload->epoll_fd, events, EVENTS,
                       timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS);
    if (count < 0 && errno != EINTR)
        return diag_errno(session_diag(preload->session), -errno, "recorder preload");
    taken = accept_all(preload);
    if (taken < 0)
        return taken;
    for (int i = 0; i < count; i++) {
        struct image *image = events[i].data.ptr;

        if (image && !image->ended) {
            image->ended = true;
            epoll_ctl(preload->epoll_fd, EPOLL_CTL_DEL, image->pidfd, NULL);
        }
    }
    taken = drain_images(preload);
    if (preload->stopped && taken == 0) {
        for (struct image *image = preload->images; image; image = image->next) {
            int err = image_finish(image, preload->session);

            if (err)
                return err;
            image->distrusted = true; /* it may run on, unrecorded */
        }
    }
    return taken;
}

static int preload_sample(void *state, unsigned int one_in)
{
    struct preload *preload = state;

    preload->sample = one_in;
    for (struct image *image = preload->images; image; image = image->next)
        image_sample(image, one_in);
    return 0;
}

static int preload_stop(void *state)
{
    struct preload *preload = state;

    preload->stopped = true;
    return 0;
}

const struct recorder recorder_preload = {
    .name = "preload",
    .summary = "a shim in the program's own process (LD_PRELOAD); needs no rights",
    .help =
        "Sees what dynamically linked programs do through libc and libaio: read, write and "
        "their vectored and positioned forms, libaio, POSIX aio, stdio, open, close, fsync, "
        "fallocate, rename and the like, through fork, exec and threads. stdio's own reads "
        "and writes are derived from its buffers and marked so. Mappings are noted, what is "
        "loaded and stored through them is not seen.",
    .issue_seen = {[TRACE_API_SYNC] = SEES_EXACT,
                   [TRACE_API_VECTORED] = SEES_EXACT,
                   [TRACE_API_LIBAIO] = SEES_EXACT,
                   [TRACE_API_IO_URING] = SEES_EXACT,
                   [TRACE_API_POSIX_AIO] = SEES_EXACT,
                   [TRACE_API_STDIO] = SEES_DERIVED},
    .completion_seen = {[TRACE_API_SYNC] = SEES_EXACT,
                        [TRACE_API_VECTORED] = SEES_EXACT,
                        [TRACE_API_LIBAIO] = SEES_UPPER,
                        [TRACE_API_IO_URING] = SEES_UPPER,
                        [TRACE_API_POSIX_AIO] = SEES_UPPER,
                        [TRACE_API_STDIO] = SEES_UPPER},
    .op_cost_ns = 100,
    .probe = preload_probe,
    .accepts = preload_accepts,
    .open = preload_open,
    .child = preload_child,
    .poll = preload_poll,
    .sample = preload_sample,
    .stop = preload_stop,
    .close = preload_close,
};
