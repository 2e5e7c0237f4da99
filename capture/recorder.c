/* SPDX-License-Identifier: MIT */
#include "capture/recorder.h"

#include <errno.h>
#include <string.h>

#define REGISTER(name) extern const struct recorder recorder_##name;
#include "recorders.def"
#undef REGISTER

/* Ended by NULL, so that a build without recorders still has a table. */
static const struct recorder *const recorders[] = {
#define REGISTER(name) &recorder_##name,
#include "recorders.def"
#undef REGISTER
    NULL};

const struct recorder *recorder_at(unsigned int index)
{
    if (index >= sizeof(recorders) / sizeof(recorders[0]))
        return NULL;
    return recorders[index];
}

const struct recorder *recorder_find(const char *name)
{
    for (unsigned int i = 0; recorders[i]; i++)
        if (!strcmp(recorders[i]->name, name))
            return recorders[i];
    return NULL;
}

int recorder_probe(const struct recorder *recorder, char *reason, size_t reason_size, char *fix,
                   size_t fix_size)
{
    if (reason_size > 0)
        reason[0] = '\0';
    if (fix_size > 0)
        fix[0] = '\0';
    if (recorder->unavailable) {
        if (reason_size > 0) {
            strncpy(reason, recorder->unavailable, reason_size - 1);
            reason[reason_size - 1] = '\0';
        }
        return -EOPNOTSUPP;
    }
    return recorder->probe(reason, reason_size, fix, fix_size);
}

const struct recorder *recorder_choose(const struct capture_scope *scope, struct diag *diag)
{
    static const char *const preference[] = {"bpf", "preload", "block"};
    char reason[256], fix[256], why[512] = "";
    bool device = scope->device_count > 0;

    for (unsigned int i = 0; i < sizeof(preference) / sizeof(preference[0]); i++) {
        const struct recorder *recorder = recorder_find(preference[i]);
        struct diag quiet = DIAG_INIT;

        if (!recorder || device != !strcmp(preference[i], "block"))
            continue;
        if (!recorder->unavailable && recorder->accepts(scope, &quiet) < 0) {
            diag_set(diag, quiet.error, "%s", quiet.text);
            continue;
        }
        if (recorder_probe(recorder, reason, sizeof(reason), fix, sizeof(fix)) == 0) {
            diag_clear(diag);
            return recorder;
        }
        diag_note(diag, "recorder %s cannot run here: %s", recorder->name, reason);
        if (!why[0]) {
            strncpy(why, reason, sizeof(why) - 1);
            why[sizeof(why) - 1] = '\0';
        }
    }
    diag_set(diag, -EOPNOTSUPP, "no recorder can do this here%s%s; see iotape capture --list",
             why[0] ? ": " : "", why);
    return NULL;
}
