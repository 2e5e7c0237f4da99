/* SPDX-License-Identifier: MIT */
#include "traces/opts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/units.h"

static void *field(const struct opt *opt, void *conf)
{
    return (char *)conf + opt->offset;
}

static bool table_ends(const struct opt *opt)
{
    return !opt->name && !opt->help;
}

static bool takes_value(const struct opt *opt)
{
    return opt->type != OPT_FLAG && opt->type != OPT_HEADING;
}

static int bad_value(const struct opt *opt, const char *text, const char *expected, int err,
                     struct diag *diag)
{
    return diag_set(diag, -EINVAL, "option --%s: '%s' is %s: expected %s", opt->name, text,
                    err == -ERANGE ? "out of range" : "not valid", expected);
}

static int set_number(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    static const char *const expected[] = {
        [OPT_COUNT] = "a count such as 8 or 10k",
        [OPT_SIZE] = "a size such as 4096, 4k or 1MiB",
        [OPT_TIME] = "a time with its unit such as 10ms or 1.5s",
    };
    uint64_t value;
    int err = opt->type == OPT_COUNT  ? units_parse_count(text, &value)
              : opt->type == OPT_SIZE ? units_parse_size(text, &value)
                                      : units_parse_time(text, &value);

    if (err)
        return bad_value(opt, text, expected[opt->type], err, diag);
    if (value < opt->min || (opt->max && value > opt->max)) {
        if (!opt->max)
            return diag_set(diag, -EINVAL,
                            "option --%s: '%s' is out of range: at least %" PRIu64, opt->name,
                            text, opt->min);
        return diag_set(diag, -EINVAL,
                        "option --%s: '%s' is out of range: %" PRIu64 " to %" PRIu64, opt->name,
                        text, opt->min, opt->max);
    }
    memcpy(field(opt, conf), &value, sizeof(value));
    return 0;
}

static int set_double(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    double value;
    int err = units_parse_double(text, &value);

    if (err)
        return bad_value(opt, text, "a number such as 1.5", err, diag);
    if (value < (double)opt->min || (opt->max && value > (double)opt->max))
        return bad_value(opt, text, opt->min ? "a larger number" : "a number in range", -ERANGE,
                         diag);
    memcpy(field(opt, conf), &value, sizeof(value));
    return 0;
}

static int set_enum(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    char list[256] = "";
    size_t used = 0;

    for (int i = 0; opt->values[i]; i++) {
        if (strcmp(text, opt->values[i]) == 0) {
            memcpy(field(opt, conf), &i, sizeof(i));
            return 0;
        }
        if (used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                     opt->values[i]);
    }
    return diag_set(diag, -EINVAL, "option --%s: '%s' is not valid: expected one of %s",
                    opt->name, text, list);
}

static int add_to_list(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    struct opt_list *list = field(opt, conf);
    const char **items = realloc(list->items, (list->count + 1) * sizeof(*items));

    if (!items)
        return diag_set(diag, -ENOMEM, "out of memory");
    items[list->count++] = text;
    list->items = items;
    return 0;
}

static int set_flag(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    static const char *const yes[] = {"1", "yes", "true", "on"};
    static const char *const no[] = {"0", "no", "false", "off"};

    for (size_t i = 0; i < 4; i++) {
        bool value = strcmp(text, yes[i]) == 0;

        if (value || strcmp(text, no[i]) == 0) {
            memcpy(field(opt, conf), &value, sizeof(value));
            return 0;
        }
    }
    return bad_value(opt, text, "0 or 1", 0, diag);
}

static int set_value(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    switch (opt->type) {
    case OPT_FLAG: return set_flag(opt, conf, text, diag);
    case OPT_STRING: memcpy(field(opt, conf), &text, sizeof(text)); return 0;
    case OPT_COUNT:
    case OPT_SIZE:
    case OPT_TIME: return set_number(opt, conf, text, diag);
    case OPT_DOUBLE: return set_double(opt, conf, text, diag);
    case OPT_ENUM: return set_enum(opt, conf, text, diag);
    case OPT_LIST: return add_to_list(opt, conf, text, diag);
    case OPT_CALL: return opt->parse(opt, conf, text, diag);
    case OPT_HEADING: break;
    }
    return -EINVAL;
}

int opts_defaults(const struct opt *table, void *conf, struct diag *diag)
{
    for (const struct opt *opt = table; !table_ends(opt); opt++) {
        if (!opt->name || !opt->def)
            continue;
        int err = set_value(opt, conf, opt->def, diag);

        if (err)
            return err;
    }
    return 0;
}

static const struct opt *find(const struct opt *table, const char *name, size_t length)
{
    for (const struct opt *opt = table; !table_ends(opt); opt++)
        if (opt->name && strlen(opt->name) == length && memcmp(opt->name, name, length) == 0)
            return opt;
    return NULL;
}

static const struct opt *find_letter(const struct opt *table, char letter)
{
    for (const struct opt *opt = table; !table_ends(opt); opt++)
        if (opt->name && opt->letter == letter)
            return opt;
    return NULL;
}

struct parse {
    const struct opt *table;
    void *conf;
    bool *given;
    bool *seen; /* rows named so far; given when the caller wants it */
    char **argv;
    int argc, at; /* at: the argument being read */
    struct diag *diag;
};

static int mark_seen(struct parse *parse, const struct opt *opt)
{
    size_t row = (size_t)(opt - parse->table);

    if (parse->seen[row] && opt->type != OPT_LIST)
        return diag_set(parse->diag, -EINVAL, "option --%s is given twice", opt->name);
    parse->seen[row] = true;
    return 0;
}

static int take(struct parse *parse, const struct opt *opt, const char *value)
{
    int err = mark_seen(parse, opt);

    if (err)
        return err;
    if (!takes_value(opt))
        return set_flag(opt, parse->conf, value ? value : "1", parse->diag);
    if (!value) {
        if (parse->at + 1 >= parse->argc)
            return diag_set(parse->diag, -EINVAL, "option --%s needs a value: %s", opt->name,
                            opt->arg ? opt->arg : "VALUE");
        value = parse->argv[++parse->at];
    }
    return set_value(opt, parse->conf, value, parse->diag);
}

static int take_long(struct parse *parse, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const struct opt *opt = find(parse->table, text, length);

    if (!opt && !equals && strncmp(text, "no-", 3) == 0) {
        opt = find(parse->table, text + 3, length - 3);
        if (opt && opt->type == OPT_FLAG)
            return take(parse, opt, "0");
        opt = NULL;
    }
    if (!opt)
        return diag_set(parse->diag, -EINVAL, "unknown option --%.*s (see --help)", (int)length,
                        text);
    if (equals && opt->type == OPT_FLAG)
        return diag_set(parse->diag, -EINVAL, "option --%s takes no value", opt->name);
    return take(parse, opt, equals ? equals + 1 : NULL);
}

/* -d4, -d 4, and flags in a row: -qv */
static int take_short(struct parse *parse, const char *text)
{
    for (; *text; text++) {
        const struct opt *opt = find_letter(parse->table, *text);
        int err;

        if (!opt)
            return diag_set(parse->diag, -EINVAL, "unknown option -%c (see --help)", *text);
        if (takes_value(opt))
            return take(parse, opt, text[1] ? text + 1 : NULL);
        err = take(parse, opt, NULL);
        if (err)
            return err;
    }
    return 0;
}

static size_t table_rows(const struct opt *table)
{
    size_t rows = 0;

    while (!table_ends(&table[rows]))
        rows++;
    return rows;
}

static int parse_start(struct parse *parse)
{
    parse->seen = calloc(table_rows(parse->table) + 1, sizeof(bool));
    return parse->seen ? 0 : diag_set(parse->diag, -ENOMEM, "out of memory");
}

static void parse_end(struct parse *parse)
{
    if (parse->given && parse->seen)
        memcpy(parse->given, parse->seen, table_rows(parse->table) * sizeof(bool));
    free(parse->seen);
}

int opts_parse(const struct opt *table, void *conf, int argc, char **argv, bool stop_at_operand,
               bool *given, int *ret_operands, struct diag *diag)
{
    struct parse parse = {table, conf, given, NULL, argv, argc, 1, diag};
    int operands = 0, err = parse_start(&parse);

    for (; !err && parse.at < argc; parse.at++) {
        char *text = argv[parse.at];

        if (text[0] == '-' && text[1] == '-' && !text[2]) {
            for (parse.at++; parse.at < argc; parse.at++)
                argv[++operands] = argv[parse.at];
        } else if (text[0] == '-' && text[1] == '-') {
            err = take_long(&parse, text + 2);
        } else if (text[0] == '-' && text[1]) {
            err = take_short(&parse, text + 1);
        } else if (stop_at_operand) {
            for (; parse.at < argc; parse.at++)
                argv[++operands] = argv[parse.at];
        } else {
            argv[++operands] = text;
        }
    }
    parse_end(&parse);
    if (!err)
        *ret_operands = operands;
    return err;
}

/* Cuts the next "key=value" off *text, undoing "\,"; NULL at the end. */
static char *next_pair(char **text)
{
    char *start = *text, *in = start, *out = start;

    if (!start || !*start)
        return NULL;
    while (*in && *in != ',') {
        if (in[0] == '\\' && in[1] == ',')
            in++;
        *out++ = *in++;
    }
    *text = *in ? in + 1 : in;
    *out = '\0';
    return start;
}

int opts_parse_text(const struct opt *table, void *conf, const char *text, bool *given,
                    char **ret_storage, struct diag *diag)
{
    struct parse parse = {table, conf, given, NULL, NULL, 0, 0, diag};
    char *storage = strdup(text), *rest = storage, *pair;
    int err = storage ? parse_start(&parse) : diag_set(diag, -ENOMEM, "out of memory");

    while (!err && (pair = next_pair(&rest))) {
        char *equals = strchr(pair, '=');
        const struct opt *opt =
            find(table, pair, equals ? (size_t)(equals - pair) : strlen(pair));

        if (!opt)
            err = diag_set(diag, -EINVAL, "unknown option '%.*s'",
                           equals ? (int)(equals - pair) : (int)strlen(pair), pair);
        else if (!equals && takes_value(opt))
            err = diag_set(diag, -EINVAL, "option '%s' needs a value: %s=%s", pair, pair,
                           opt->arg ? opt->arg : "VALUE");
        else
            err = take(&parse, opt, equals ? equals + 1 : NULL);
    }
    parse_end(&parse);
    if (err)
        free(storage);
    else
        *ret_storage = storage;
    return err;
}

#define HELP_COLUMN 28
#define HELP_WIDTH  92

/* Words of text from the help column on, folded. at is the column reached so far. */
static void help_text(const char *text, int at, FILE *out)
{
    while (*text) {
        size_t word = strcspn(text, " ");

        if (at > HELP_COLUMN && at + 1 + (int)word > HELP_WIDTH) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
        }
        if (at > HELP_COLUMN) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, word, out);
        at += (int)word;
        text += word + strspn(text + word, " ");
    }
}

static void help_row(const struct opt *opt, FILE *out)
{
    char head[128], tail[512];
    int at = 0, used = 0;

    if (opt->letter)
        at = snprintf(head, sizeof(head), "  -%c, --%s %s", opt->letter, opt->name,
                      opt->arg ? opt->arg : "");
    else
        at = snprintf(head, sizeof(head), "      --%s %s", opt->name, opt->arg ? opt->arg : "");
    fputs(head, out);
    if (at >= HELP_COLUMN) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", HELP_COLUMN - at, "");
    tail[0] = '\0';
    if (opt->type == OPT_ENUM)
        for (int i = 0; opt->values[i] && used < 400; i++)
            used += snprintf(tail + used, sizeof(tail) - (size_t)used, "%s%s", i ? "|" : " (",
                             opt->values[i]);
    if (used)
        used += snprintf(tail + used, sizeof(tail) - (size_t)used, ")");
    if (opt->def && opt->type != OPT_FLAG)
        snprintf(tail + used, sizeof(tail) - (size_t)used, " [%s]", opt->def);
    {
        char whole[2048];

        snprintf(whole, sizeof(whole), "%s%s", opt->help ? opt->help : "", tail);
        help_text(whole, HELP_COLUMN, out);
    }
    fputc('\n', out);
}

void opts_help(const struct opt *table, FILE *out)
{
    for (const struct opt *opt = table; !table_ends(opt); opt++) {
        if (!opt->name)
            fprintf(out, "\n%s:\n", opt->help);
        else
            help_row(opt, out);
    }
}

static const char *value_text(const struct opt *opt, const void *conf, char *buf, size_t size)
{
    const char *at = (const char *)conf + opt->offset;
    uint64_t number;
    double real;
    bool flag;
    int index;
    const char *text;

    switch (opt->type) {
    case OPT_FLAG: memcpy(&flag, at, sizeof(flag)); return flag ? "1" : "0";
    case OPT_STRING: memcpy(&text, at, sizeof(text)); return text;
    case OPT_COUNT:
    case OPT_SIZE:
    case OPT_TIME:
        memcpy(&number, at, sizeof(number));
        snprintf(buf, size, "%" PRIu64 "%s", number, opt->type == OPT_TIME ? "ns" : "");
        return buf;
    case OPT_DOUBLE:
        memcpy(&real, at, sizeof(real));
        snprintf(buf, size, "%.17g", real);
        return buf;
    case OPT_ENUM: memcpy(&index, at, sizeof(index)); return opt->values[index];
    case OPT_LIST:
    case OPT_CALL:
    case OPT_HEADING: break;
    }
    return NULL;
}

void opts_each(const struct opt *table, const void *conf,
               void (*each)(void *context, const struct opt *opt, const char *text),
               void *context)
{
    for (const struct opt *opt = table; !table_ends(opt); opt++) {
        char buf[64];
        const char *text;

        if (!opt->name)
            continue;
        if (opt->type == OPT_LIST) {
            const struct opt_list *list = (const void *)((const char *)conf + opt->offset);

            for (size_t i = 0; i < list->count; i++)
                each(context, opt, list->items[i]);
            continue;
        }
        text = value_text(opt, conf, buf, sizeof(buf));
        if (text)
            each(context, opt, text);
    }
}

void opts_release(const struct opt *table, void *conf)
{
    for (const struct opt *opt = table; !table_ends(opt); opt++) {
        if (!opt->name || opt->type != OPT_LIST)
            continue;
        struct opt_list *list = field(opt, conf);

        free(list->items);
        list->items = NULL;
        list->count = 0;
    }
}
