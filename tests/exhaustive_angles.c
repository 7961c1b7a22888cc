/* SPDX-License-Identifier: MIT */
/*
 * Proves that hf_f32 rounds cosine and sine correctly for every float angle from 2^-13, below which
 * the sine is the angle and the cosine 1, to 2^63. Not part of the test run: about a minute on one
 * core of the release build.
 *
 *     build/release/bin/exhaustive_angles
 *
 * posenc_sincos is within 4 x 2^-53 (relative) of the truth here, see docs/accuracy.md. Where
 * moving its result by that much leaves the rounded float the same, the float is right. The few
 * angles where it does not are compared with values from 60 digits.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "angle.h"

static const struct {
    uint32_t angle;
    int cosine;
    float value;
} close_calls[] = {
    {0x39800000, 1, 0x1p+0f},         {0x3a544395, 1, 0x1.fffff6p-1f},
    {0x3c107fe6, 1, 0x1.fffae8p-1f},  {0x3dcf5597, 0, 0x1.9df5f2p-4f},
    {0x3ef3830f, 0, 0x1.d4de8ap-2f},  {0x424790ce, 1, 0x1.dc9802p-1f},
    {0x4371ade3, 0, 0x1.c5b4acp-3f},  {0x46199998, 0, -0x1.63f4bap-2f},
    {0x47a0e238, 1, 0x1.fc33bap-1f},  {0x4967cb9b, 0, 0x1.93bf0ap-2f},
    {0x4fb56937, 0, -0x1.fff96ep-1f}, {0x52d9d3fe, 1, -0x1.bc30f6p-1f},
    {0x55cafb2a, 0, -0x1.fcf42ep-1f}, {0x5922aa80, 1, 0x1.115d7ep-1f},
    {0x59443c0a, 1, 0x1.84bec4p-1f},  {0x5dadd689, 0, -0x1.e9f93cp-1f},
};

static uint64_t settled, listed, wrong;

static void judge(uint32_t angle, int cosine, double value)
{
    double margin = 0x1p-51 * fabs(value);
    if ((float)(value - margin) == (float)(value + margin)) {
        settled++;
        return;
    }
    for (size_t i = 0; i < sizeof(close_calls) / sizeof(close_calls[0]); i++)
        if (close_calls[i].angle == angle && close_calls[i].cosine == cosine &&
            close_calls[i].value == (float)value) {
            listed++;
            return;
        }
    wrong++;
    printf("%s of %08" PRIx32 ": %a, not settled\n", cosine ? "cosine" : "sine", angle, value);
}

int main(void)
{
    for (uint32_t angle = 0x39000000; angle < 0x5f000000; angle++) {
        double s, c;
        posenc_sincos(posenc_turns_of((double)posenc_float(angle)), &s, &c);
        judge(angle, 0, s);
        judge(angle, 1, c);
    }
    printf("%" PRIu64 " settled, %" PRIu64 " close calls right, %" PRIu64 " wrong\n", settled,
           listed, wrong);
    return wrong != 0;
}
