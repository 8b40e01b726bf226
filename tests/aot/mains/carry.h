/* carry.h - the main function of a program with objects that keep states: each run is compared with arrays that the
 * program keeps itself.
 *
 * carry.py makes the models, compiles them, and includes this file after their headers:
 * - stream: `present` is `past`, f32[b,p,3], followed by x, f32[b,n,3]; `wider` is `wide`, f32[b,2,q], followed by z,
 *   f32[b,2,n]; `count` is `counted`, f32[b], plus 1; y is the sum of the rows of `present`;
 * - duo: the same for two processors;
 * - swap: a2 = b and b2 = a + x, for f32[4];
 * - spot: s2 = s with s[i] replaced by v, for f32[5], and y = the sum of s. */
#ifndef CARRY_H
#define CARRY_H

#include <string.h>

#include "expect.h"

enum { ROOM = 1 << 16, ROWS = 4, MOST = 64 };

static unsigned char room[2][ROOM + 64];

static unsigned char *memory(int k) { return aligned(room[k]); }

/* --- states that grow along two axes --- */

/* What a stream should hold: each of the three elements of row p of batch b is at[b][p]. */
typedef struct rows {
  float at[MOST][MOST];
  int64_t n;
} rows;

#define DEFINE_STREAM(net, NET)                                                                           \
  static void net##_check(net *n, const rows *r, int64_t batch, int64_t capacity) {                       \
    for (int64_t b = 0; b < batch; b++) {                                                                 \
      float sum = 0;                                                                                      \
      for (int64_t p = 0; p < r->n; p++) {                                                                \
        sum += r->at[b][p];                                                                               \
        EXPECT(net##_out_present(n)[(b * capacity + p) * 3 + 2] == r->at[b][p]);                          \
        EXPECT(net##_out_wider(n)[(b * 2 + 1) * capacity + p] == -r->at[b][p]);                           \
      }                                                                                                   \
      EXPECT(net##_out_y(n)[b * 3 + 1] == sum);                                                           \
    }                                                                                                     \
  }                                                                                                       \
  /* Binds to r->n rows and adds `more` rows. */                                                          \
  static void net##_add(net *n, int k, rows *r, int64_t batch, int64_t more, int64_t capacity) {          \
    EXPECT(net##_arena_bytes(batch, more, r->n, r->n, capacity) <= ROOM);                                 \
    EXPECT(net##_bind(n, memory(k), batch, more, r->n, r->n, capacity) == NET##_OK);                      \
    for (int64_t b = 0; b < batch; b++) {                                                                 \
      for (int64_t p = 0; p < more; p++) {                                                                \
        float x = r->at[b][r->n + p] = (float)(100 * b + r->n + p + 1);                                   \
        for (int64_t c = 0; c < 3; c++) {                                                                 \
          net##_in_x(n)[(b * more + p) * 3 + c] = x;                                                      \
        }                                                                                                 \
        net##_in_z(n)[(b * 2 + 0) * more + p] = net##_in_z(n)[(b * 2 + 1) * more + p] = -x;               \
      }                                                                                                   \
    }                                                                                                     \
    EXPECT(net##_run(n) == NET##_OK);                                                                     \
    r->n += more;                                                                                         \
    net##_check(n, r, batch, capacity);                                                                   \
  }                                                                                                       \
                                                                                                          \
  static void test_##net(void) {                                                                          \
    net n;                                                                                                \
    rows r = {.n = 0}, again = {.n = 0};                                                                  \
    EXPECT(net##_init(&n, NULL) == NET##_OK);                                                             \
    memset(room, 0xff, sizeof room);                                                                      \
    net##_add(&n, 0, &r, 2, 3, ROWS);                                                                     \
    EXPECT(net##_set_input(&n, 1, room) == NET##_ERROR_NO_SUCH);                                          \
    EXPECT(net##_set_output(&n, 1, room) == NET##_ERROR_NO_SUCH);                                         \
    EXPECT(net##_bind(&n, memory(0), 2, 2, 3, 3, ROWS) > NET##_ERROR_NO_SUCH); /* no room for two more */ \
    EXPECT(net##_run(&n) == NET##_ERROR_NOT_READY && net##_reset(&n) == NET##_ERROR_NOT_READY);           \
    EXPECT(net##_bind(&n, memory(0), 2, 0, 5, 5, ROWS) > NET##_ERROR_NO_SUCH);                            \
    net##_add(&n, 0, &r, 2, 1, ROWS); /* a bind that failed has not changed the state */                  \
    EXPECT(net##_out_count(&n)[1] == 2);                                                                  \
    net##_add(&n, 0, &again, 1, 2, 2 * ROWS); /* as many bytes, other sizes: the state is empty */        \
    EXPECT(net##_out_count(&n)[0] == 1);                                                                  \
    EXPECT(net##_out_present(&n)[2 * 3] == 0 && net##_out_present(&n)[7 * 3 + 2] == 0);                   \
    EXPECT(net##_bind(&n, memory(1), 1, 9, 0, 0, ROWS) > NET##_ERROR_NO_SUCH);                            \
    r.n = 0;                                                                                              \
    net##_add(&n, 1, &r, 2, 1, ROWS); /* bound to other memory, the state starts empty */                 \
    EXPECT(net##_out_count(&n)[1] == 1 && net##_out_present(&n)[3] == 0);                                 \
    net##_add(&n, 1, &r, 2, 1, ROWS);                                                                     \
    EXPECT(net##_out_count(&n)[1] == 2 && net##_reset(&n) == NET##_OK);                                   \
    EXPECT(net##_out_present(&n)[0] == 0 && net##_in_counted(&n)[1] == 0);                                \
  }
DEFINE_STREAM(stream, STREAM)
DEFINE_STREAM(duo, DUO)

/* --- states of constant size --- */

static void test_swap(void) {
  static const float x[4] = {1, 2, 3, 4};
  swap n;
  float a = 0, b = 0;
  EXPECT(swap_init(&n, NULL) == SWAP_OK && swap_bind(&n, memory(0)) == SWAP_OK);
  EXPECT(swap_set_in_x(&n, x) == SWAP_OK);
  for (int k = 0; k < 5; k++) {
    float old = a;
    a = b;
    b = old + x[3];
    EXPECT(swap_run(&n) == SWAP_OK && swap_out_a2(&n)[3] == a && swap_out_b2(&n)[3] == b);
    EXPECT(swap_in_a(&n)[3] == a && swap_in_b(&n)[3] == b);
  }
  EXPECT(swap_bind(&n, memory(0)) == SWAP_OK && swap_in_b(&n)[3] == b);
  EXPECT(swap_bind(&n, NULL) == SWAP_ERROR_MEMORY);
  EXPECT(swap_bind(&n, memory(0)) == SWAP_OK && swap_in_b(&n)[3] == b);
  EXPECT(swap_bind(&n, memory(1)) == SWAP_OK && swap_in_b(&n)[3] == 0);
}

/* The sum is that of the state before the update, although the state is updated in place. */
static void test_spot(void) {
  spot n;
  float sum = 0;
  EXPECT(spot_init(&n, NULL) == SPOT_OK && spot_bind(&n, memory(0)) == SPOT_OK);
  for (int64_t i = 0; i < 5; i++) {
    spot_in_i(&n)[0] = i;
    spot_in_v(&n)[0] = (float)(i + 1);
    EXPECT(spot_run(&n) == SPOT_OK && spot_out_y(&n)[0] == sum && spot_out_s2(&n)[i] == (float)(i + 1));
    EXPECT((const void *)spot_in_s(&n) != NULL && spot_in_s(&n)[i] == (float)(i + 1));
    sum += (float)(i + 1);
  }
  spot_in_i(&n)[0] = 5;
  EXPECT(spot_run(&n) > SPOT_ERROR_NO_SUCH && spot_in_s(&n)[4] == 5); /* the run that fails changes nothing */
}

int main(void) {
  test_stream();
  test_duo();
  test_swap();
  test_spot();
  return report();
}

#endif
