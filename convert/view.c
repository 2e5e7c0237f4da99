/* SPDX-License-Identifier: MIT */
#include "convert/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/operands.h"
#include "convert/pipeline.h"
#include "convert/sniff.h"
#include "convert/unpack.h"

static int temp_write(void *context, const void *buffer, size_t bytes)
{
    const struct view *view = context;
    const char *at = buffer;

    while (bytes) {
        ssize_t put = write(view->fd, at, bytes);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        at += put;
        bytes -= (size_t)put;
    }
    return 0;
}

static int temp_close(void *context, bool keep)
{
    (void)context;
    (void)keep;
    return 0;
}

static int open_temp(struct view *view, const struct convert_conf *conf, struct diag *diag)
{
    const char *dir = conf->temp_dir ? conf->temp_dir : getenv("TMPDIR");
    char name[4096];

    snprintf(name, sizeof(name), "%s/iotape-view.XXXXXX", dir && *dir ? dir : "/tmp");
    view->fd = mkostemp(name, O_CLOEXEC);
    if (view->fd < 0)
        return diag_errno(diag, -errno, "%s", name);
    unlink(name);
    return 0;
}

static int import_to_temp(struct view *view, const struct convert_conf *conf,
                          struct operands *operands, struct diag *diag)
{
    struct trace_sink sink = {
        .write = temp_write, .close = temp_close, .context = view, .name = "temporary tape"};
    struct convert_conf plain = *conf;
    struct pipeline pipeline;
    struct trace_source source;
    char path[64];
    int err;

    plain.to = "tape:level=1";
    plain.output = NULL;
    memset(&plain.filter, 0, sizeof(plain.filter));
    err = open_temp(view, conf, diag);
    if (err < 0)
        return err;
    err = pipeline_init(&pipeline, &plain, operands, diag);
    if (err == 0)
        err = pipeline_run(&pipeline, operands, &sink);
    if (err == 0)
        view->format = pipeline.importer->name;
    pipeline_release(&pipeline);
    if (err < 0)
        return err;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", view->fd);
    err = trace_source_path(&source, path, diag);
    return err < 0 ? err : trace_reader_open(&view->reader, &source, diag);
}

/* A file that the tape reader can open itself: not compressed, not a pipe. */
static bool is_plain(const char *path)
{
    struct diag quiet = DIAG_INIT;
    struct unpack *unpack;
    const uint8_t *head;
    int64_t length;
    bool plain;

    if (!strcmp(path, "-") || unpack_open_path(&unpack, path, &quiet) < 0)
        return false;
    plain = unpack_is_seekable(unpack);
    length = plain ? unpack_head(unpack, &head) : -1;
    plain = length >= 0 && !unpack_head_is_packed(head, (size_t)length);
    unpack_free(unpack);
    return plain;
}

int view_open(struct view *view, const struct convert_conf *conf, char *const *words,
              int word_count, struct diag *diag)
{
    struct operands operands = {0};
    const struct importer *importer = NULL;
    const uint8_t *bytes;
    const char *opts;
    size_t sniffed = 0;
    int err = 0;

    memset(view, 0, sizeof(*view));
    view->fd = -1;
    view->name = words[0];
    if (conf->from) {
        importer = importer_find(conf->from, pipeline_format_name(conf->from, &opts));
        if (!importer)
            return diag_set(diag, -EINVAL, "--from: no format '%s' (--list-formats)",
                            conf->from);
    }
    for (int i = 0; i < word_count && err == 0; i++)
        err = operands_add(&operands, words[i], importer, diag);
    if (err == 0 && !importer)
        importer = operands.importer;
    while (err == 0 && !importer && sniffed + 1 < operands.inputs.count &&
           input_peek(operands.inputs.items[sniffed], &bytes, 1) == 0)
        input_park(operands.inputs.items[sniffed++]); /* an empty file of a per-CPU set */
    if (err == 0 && !importer)
        err = sniff_input(operands.inputs.items[sniffed], &importer, diag);
    if (err == 0 && !strcmp(importer->name, "tape") && operands.inputs.count == 1 &&
        is_plain(words[0])) {
        view->format = "tape";
        err = trace_reader_open_path(&view->reader, words[0], diag);
    } else if (err == 0) {
        input_park(operands.inputs.items[sniffed]);
        err = import_to_temp(view, conf, &operands, diag);
    }
    operands_release(&operands);
    return err < 0 ? diag_errno(diag, err, "%s", words[0]) : 0;
}

void view_release(struct view *view)
{
    trace_reader_free(view->reader);
    if (view->fd >= 0)
        close(view->fd);
    free(view->report_notes);
    view->reader = NULL;
    view->fd = -1;
}
