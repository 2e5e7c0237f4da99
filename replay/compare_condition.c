/* SPDX-License-Identifier: MIT */
#include "replay/compare_condition.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/units.h"

const char *const condition_outcome_names[] = {"true", "false", "undecided", NULL};

static int limit_parse(struct condition *condition, const char *text)
{
    size_t length = strlen(text);
    char number[32];
    uint64_t whole;

    condition->relative = length > 1 && text[length - 1] == '%';
    if (condition->relative) {
        if (length > sizeof number)
            return -EINVAL;
        memcpy(number, text, length - 1);
        number[length - 1] = '\0';
        if (units_parse_double(number[0] == '+' ? number + 1 : number, &condition->limit) < 0)
            return -EINVAL;
        condition->limit /= 100;
        return 0;
    }
    if (units_parse_double(text, &condition->limit) == 0)
        return 0;
    if (units_parse_time(text, &whole) < 0 && units_parse_size(text, &whole) < 0)
        return -EINVAL;
    condition->limit = (double)whole;
    return 0;
}

int condition_parse(struct condition *ret_condition, const char *text, struct diag *diag)
{
    struct condition condition = {.text = text};
    size_t length = strcspn(text, "<>");

    if (length == 0 || length >= sizeof condition.metric || !text[length])
        return diag_set(diag, -EINVAL, "--fail-if '%s': expected METRIC>LIMIT or METRIC<LIMIT",
                        text);
    memcpy(condition.metric, text, length);
    condition.above = text[length] == '>';
    if (limit_parse(&condition, text + length + 1) < 0)
        return diag_set(diag, -EINVAL,
                        "--fail-if '%s': expected a limit such as +5%%, 200us, 4k or 0", text);
    *ret_condition = condition;
    return 0;
}

bool condition_met(const struct condition *condition, double figure, double other)
{
    double value = figure;

    if (condition->relative) {
        if (other == 0)
            return condition->above && figure > 0;
        value = figure / other - 1;
    }
    return condition->above ? value > condition->limit : value < condition->limit;
}
