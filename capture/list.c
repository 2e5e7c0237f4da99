/* SPDX-License-Identifier: MIT */
#include "capture/list.h"

#include "capture/recorder.h"

static const char *sees_text(unsigned int sees)
{
    switch (sees) {
    case SEES_EXACT: return "exact";
    case SEES_UPPER: return "bound";
    case SEES_DERIVED: return "derived";
    default: return "-";
    }
}

static void list_recorders(FILE *out)
{
    const struct recorder *recorder;
    char reason[512], fix[512];

    for (unsigned int i = 0; (recorder = recorder_at(i)); i++) {
        int err = recorder_probe(recorder, reason, sizeof(reason), fix, sizeof(fix));

        fprintf(out, "%-8s %s\n", recorder->name, recorder->summary);
        if (!err) {
            fprintf(out, "         can run here%s%s\n", reason[0] ? ": " : "", reason);
            continue;
        }
        fprintf(out, "         cannot run here: %s\n", reason[0] ? reason : "unknown reason");
        if (fix[0])
            fprintf(out, "         to enable: %s\n", fix);
    }
}

static void list_row(FILE *out, const char *title, unsigned int api, bool completion)
{
    const struct recorder *recorder;

    fprintf(out, "%-10s %-10s", title, trace_api_name(api));
    for (unsigned int i = 0; (recorder = recorder_at(i)); i++)
        fprintf(
            out, " %-8s",
            sees_text(completion ? recorder->completion_seen[api] : recorder->issue_seen[api]));
    fputc('\n', out);
}

void list_print(FILE *out)
{
    const struct recorder *recorder;

    list_recorders(out);
    fprintf(
        out,
        "\nWhat each sees, by the interface an op is issued through. exact: each op, and "
        "when;\n"
        "bound: completed at or before the time given; derived: worked out from buffers and\n"
        "file positions; -: not seen, counted as unseen where it can be told.\n\n%-10s %-10s",
        "", "api");
    for (unsigned int i = 0; (recorder = recorder_at(i)); i++)
        fprintf(out, " %-8s", recorder->name);
    fputc('\n', out);
    for (unsigned int api = 1; api < TRACE_API_COUNT; api++)
        list_row(out, "issue", api, false);
    for (unsigned int api = 1; api < TRACE_API_COUNT; api++)
        list_row(out, "completion", api, true);
}
