/* SPDX-License-Identifier: MIT */
/*
 * Options as one typed table: parsing, --help, the man page check and the recorded
 * configuration all come from it.
 *
 *     struct conf { uint64_t depth; bool writes; const char *root; };
 *     static const struct opt opts[] = {
 *         {"depth", 'd', OPT_COUNT, offsetof(struct conf, depth), .def = "1", .min = 1,
 *          .max = 65536, .arg = "N", .help = "ops in flight per worker"},
 *         {"writes", 0, OPT_FLAG, offsetof(struct conf, writes), .help = "allow writes"},
 *         {0}};
 *
 * Rules: long options everywhere (--depth 4, --depth=4); a flag takes no value, --no-X clears it;
 * an option given twice is an error unless its type is OPT_LIST; "--" ends options; options and
 * operands may be mixed unless the table was parsed with stop_at_operand.
 * Every parse error is a diag with -EINVAL that names the option and what was expected:
 * main.c exits 2 for it. Strings point into argv.
 */
#ifndef TRACES_OPTS_H
#define TRACES_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct diag;

enum opt_type {
    OPT_HEADING, /* help text only: name is NULL, help is the heading; offset unused */
    OPT_FLAG,    /* bool */
    OPT_STRING,  /* const char * */
    OPT_COUNT,   /* uint64_t, units_parse_count */
    OPT_SIZE,    /* uint64_t bytes, units_parse_size */
    OPT_TIME,    /* uint64_t ns, units_parse_time */
    OPT_DOUBLE,  /* double; min and max apply, as whole numbers */
    OPT_ENUM,    /* int: index in values[] (NULL-ended) */
    OPT_LIST,    /* struct opt_list: may be repeated */
    OPT_CALL,    /* parse() does it; offset is passed through */
};

struct opt_list {
    const char **items; /* owned; freed by opts_release */
    size_t count;
};

struct opt {
    const char *name; /* without dashes; NULL with a NULL help ends the table */
    char letter;      /* short form, 0 = none */
    enum opt_type type;
    size_t offset;
    const char *help;          /* one or more sentences; the unit is said here */
    const char *arg;           /* "N", "DIR": shown in help; NULL for flags */
    const char *def;           /* default as text; NULL = zero */
    uint64_t min, max;         /* inclusive; max 0 = no limit */
    const char *const *values; /* OPT_ENUM */
    /* OPT_CALL: 0 or -EINVAL with diag set. text is NULL never. */
    int (*parse)(const struct opt *opt, void *conf, const char *text, struct diag *diag);
};

/* Writes every default into conf. -EINVAL only for a wrong table (tests catch it). */
int opts_defaults(const struct opt *table, void *conf, struct diag *diag);
/*
 * Parses argv[1..]; operands are moved to the front: argv[1 .. *ret_operands]. Defaults must
 * have been set. stop_at_operand leaves everything from the first operand on as operands.
 * given, when not NULL, is an array with one bool a table row, set for options that were named.
 */
int opts_parse(const struct opt *table, void *conf, int argc, char **argv, bool stop_at_operand,
               bool *given, int *ret_operands, struct diag *diag);
/* Parses "key=val,key=val" (engine options, synth specifications); a flag may stand alone.
 * A comma inside a value is written "\,". text is copied into *ret_storage, which the string
 * values point into and the caller frees (with free) after the conf's last use. */
int opts_parse_text(const struct opt *table, void *conf, const char *text, bool *given,
                    char **ret_storage, struct diag *diag);
/* The table as aligned help lines, each name, argument, help and default. */
void opts_help(const struct opt *table, FILE *out);
/* Name and text of each option's present value, for the recorded configuration. */
void opts_each(const struct opt *table, const void *conf,
               void (*each)(void *context, const struct opt *opt, const char *text),
               void *context);
/* Frees what OPT_LIST allocated. */
void opts_release(const struct opt *table, void *conf);

#endif
