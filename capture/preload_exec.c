/* SPDX-License-Identifier: MIT */
/* exec and posix_spawn: programs that start others with an environment of their own are still
 * followed, and those that the shim cannot enter are named. And seccomp, which ends it all. */
#include "capture/preload.h"

#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARGUMENTS_MAX 65536

extern char **environ;

DEFINE_REAL(prctl);
DEFINE_REAL(execve);
DEFINE_REAL(execvpe);
DEFINE_REAL(fexecve);
DEFINE_REAL(execveat);
DEFINE_REAL(posix_spawn);
DEFINE_REAL(posix_spawnp);

/* The caller's environment, or a copy with ours put in. */
struct exec_env {
    char *const *env;
    char **made;
    size_t made_bytes;
};

static bool env_names(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return !strncmp(entry, name, length) && entry[length] == '=';
}

/* Mapped, not allocated: this may be a child of vfork or a forked thread's. */
static void exec_env_make(struct exec_env *made, char *const *env)
{
    const char *ring = shim_env_ring(), *preload = shim_env_preload();
    size_t count = 0, used = 0;
    bool has_ring = false, has_preload = false;
    long mapped;

    memset(made, 0, sizeof(*made));
    made->env = env;
    if (!ring || !preload)
        return;
    for (; env && env[count]; count++) {
        has_ring |= !strcmp(env[count], ring);
        has_preload |= !strcmp(env[count], preload);
    }
    if (has_ring && has_preload && !shim_sealed())
        return;
    made->made_bytes = (count + 3) * sizeof(char *);
    mapped = RAW(mmap, 0, made->made_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (mapped < 0 && mapped > -4096)
        return;
    made->made = (char **)mapped;
    for (size_t i = 0; i < count; i++)
        if (!env_names(env[i], RING_ENV) &&
            (!env_names(env[i], "LD_PRELOAD") || !strcmp(env[i], preload)))
            made->made[used++] = env[i];
    if (!shim_sealed()) /* what is forbidden here is forbidden there as well */
        made->made[used++] = (char *)(uintptr_t)ring;
    if (!has_preload)
        made->made[used++] = (char *)(uintptr_t)preload;
    made->made[used] = NULL;
    made->env = made->made;
}

static void exec_env_release(struct exec_env *made)
{
    if (made->made)
        RAW(munmap, made->made, made->made_bytes);
}

/* So that the collector can look whether the shim will get in. */
static void tell_program(const char *path)
{
    struct ring_entry entry = {.type = RING_EXEC};
    char joined[RING_PATH_MAX], probe;
    size_t length;

    if (!shim_process_ready())
        return;
    /* The path may be anywhere; the kernel says whether it can be read. */
    if (!path || RAW(readlinkat, -1, path, &probe, 1) == -EFAULT)
        return;
    length = strnlen(path, RING_PATH_MAX + 1);
    if (length > RING_PATH_MAX)
        return;
    /* This process may be gone when the collector looks, and its folder with it. */
    if (path[0] != '/' && strchr(path, '/')) {
        length = file_absolute(path, joined, sizeof(joined));
        path = joined;
    }
    shim_entry(&entry, path, length);
}

EXPORT int prctl(int option, ...)
{
    unsigned long word[4];
    va_list arguments;

    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        word[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP)
        shim_seal();
    return REAL(prctl)(option, word[0], word[1], word[2], word[3]);
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
    struct exec_env made;
    int result;

    tell_program(path);
    exec_env_make(&made, env);
    result = REAL(execve)(path, argv, made.env);
    exec_env_release(&made);
    return result;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
    struct exec_env made;
    int result;

    tell_program(file);
    exec_env_make(&made, env);
    result = REAL(execvpe)(file, argv, made.env);
    exec_env_release(&made);
    return result;
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
    struct exec_env made;
    int result;

    exec_env_make(&made, env);
    result = REAL(fexecve)(fd, argv, made.env);
    exec_env_release(&made);
    return result;
}

EXPORT int execveat(int dir_fd, const char *path, char *const argv[], char *const env[],
                    int flags)
{
    struct exec_env made;
    int result;

    exec_env_make(&made, env);
    result = REAL(execveat)(dir_fd, path, argv, made.env, flags);
    exec_env_release(&made);
    return result;
}

/* The words of execl, execlp and execle, put into an array on the stack. */
#define EXECL_ARGUMENTS(first)                                                                 \
    va_list arguments;                                                                         \
    size_t count = 1;                                                                          \
                                                                                               \
    va_start(arguments, first);                                                                \
    while (va_arg(arguments, char *) && count < ARGUMENTS_MAX)                                 \
        count++;                                                                               \
    va_end(arguments);                                                                         \
    char **argv = __builtin_alloca((count + 1) * sizeof(char *));                              \
    va_start(arguments, first);                                                                \
    argv[0] = (char *)(uintptr_t)first;                                                        \
    for (size_t i = 1; i <= count; i++)                                                        \
    argv[i] = va_arg(arguments, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    EXECL_ARGUMENTS(first);
    va_end(arguments);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    EXECL_ARGUMENTS(first);
    va_end(arguments);
    return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    char *const *env;

    EXECL_ARGUMENTS(first);
    env = va_arg(arguments, char *const *);
    va_end(arguments);
    return execve(path, argv, env);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[],
                       char *const env[])
{
    struct exec_env made;
    int result;

    tell_program(path);
    exec_env_make(&made, env);
    result = REAL(posix_spawn)(pid, path, actions, attributes, argv, made.env);
    exec_env_release(&made);
    return result;
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[],
                        char *const env[])
{
    struct exec_env made;
    int result;

    tell_program(file);
    exec_env_make(&made, env);
    result = REAL(posix_spawnp)(pid, file, actions, attributes, argv, made.env);
    exec_env_release(&made);
    return result;
}
