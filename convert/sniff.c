/* SPDX-License-Identifier: MIT */
#include "convert/sniff.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int ambiguous(const char *name, const uint8_t *bytes, size_t length, bool at_end,
                     int best, struct diag *diag)
{
    const struct importer *importer;
    char formats[256] = "", lines[256] = "";

    for (unsigned int i = 0; (importer = importer_at(i)); i++) {
        size_t used = strlen(formats), lines_used = strlen(lines);

        if ((importer->flags & IMPORTER_FORCED) || !importer->sniff ||
            importer->sniff(bytes, length, at_end) + SNIFF_MARGIN <= best)
            continue;
        snprintf(formats + used, sizeof(formats) - used, "%s%s", used ? ", " : "",
                 importer->name);
        snprintf(lines + lines_used, sizeof(lines) - lines_used, "%s--from %s",
                 lines_used ? " or " : "", importer->name);
    }
    return diag_set(diag, -EBADMSG, "%s: fits more than one format (%s): say %s", name, formats,
                    lines);
}

int sniff_bytes(const char *name, const uint8_t *bytes, size_t length, bool at_end,
                const struct importer **ret_importer, struct diag *diag)
{
    const struct importer *importer, *best = NULL;
    int best_score = IMPORT_NO, second_score = IMPORT_NO;

    if (length == 0)
        return diag_set(diag, -EBADMSG, "%s: is empty", name);
    for (unsigned int i = 0; (importer = importer_at(i)); i++) {
        int score;

        if ((importer->flags & IMPORTER_FORCED) || !importer->sniff)
            continue;
        score = importer->sniff(bytes, length, at_end);
        if (score > best_score) {
            second_score = best_score;
            best_score = score;
            best = importer;
        } else if (score > second_score) {
            second_score = score;
        }
    }
    if (!best)
        return diag_set(diag, -EBADMSG,
                        "%s: not in a format that is recognised by its content: say --from "
                        "FORMAT (--list-formats names them; --from csv with --columns reads "
                        "most tables)",
                        name);
    if (second_score + SNIFF_MARGIN > best_score)
        return ambiguous(name, bytes, length, at_end, best_score, diag);
    *ret_importer = best;
    return 0;
}

int sniff_input(struct input *input, const struct importer **ret_importer, struct diag *diag)
{
    const uint8_t *bytes;
    int64_t length = input_peek(input, &bytes, SNIFF_BYTES);

    if (length < 0)
        return (int)length;
    return sniff_bytes(input_name(input), bytes, (size_t)length, length < (int64_t)SNIFF_BYTES,
                       ret_importer, diag);
}
