/* SPDX-License-Identifier: MIT */
/* A consumer of the installed core: one turn by a radian, one version in header and library. */
#include <posenc/posenc.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    float q[2] = {1.0f, 0.0f};
    char version[32];
    posenc_error error;
    posenc_plan *plan = NULL;
    sprintf(version, "%d.%d.%d", POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR, POSENC_VERSION_PATCH);
    if (strcmp(version, posenc_version()) != 0) {
        return 1;
    }
    if (posenc_plan_create_simple(&plan, POSENC_ADJACENT, 2, 10000.0, &error) ||
        posenc_rope_flat(plan, q, NULL, POSENC_F32, 1, 1, 1, 0, 1, &error)) {
        puts(error.text);
        return 1;
    }
    posenc_plan_free(plan);
    /* The only pair turns by one radian at position 1. */
    return !(q[0] > 0.5403022f && q[0] < 0.5403024f && q[1] > 0.8414709f && q[1] < 0.8414711f);
}
