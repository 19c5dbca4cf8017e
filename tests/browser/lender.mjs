// What a lender's own software asks: `node lender.mjs QUESTION`, with ids as JSON on standard input. It prints the answer.
// TIDEMARK_BASE_URL and TIDEMARK_KEY name the service.
import { json } from "node:stream/consumers";

import { connect, dataOf, ProblemError } from "../../clients/typescript/dist/index.js";

const { TIDEMARK_BASE_URL: baseUrl = "", TIDEMARK_KEY: key = "" } = process.env;
const { api, pages } = connect({ key, baseUrl });

const QUESTIONS = {
  alert: (path) => dataOf(api.GET("/v1/alerts/{matchId}", { params: { path } })),
  customer: (path) => dataOf(api.GET("/v1/customer/{customerId}", { params: { path } })),
  evaluation: (path) => dataOf(api.GET("/v1/evaluations/{evaluationId}", { params: { path } })),
  policy: (path) => dataOf(api.GET("/v1/decision-policies/{slug}", { params: { path } })),
  async decisions(path) {
    const found = [];
    for await (const each of pages("/v1/customer/{customerId}/evaluations", "evaluations", { params: { path } })) {
      found.push(each);
    }
    return found;
  },
};

try {
  console.log(JSON.stringify(await QUESTIONS[process.argv[2]](await json(process.stdin))));
} catch (error) {
  if (!(error instanceof ProblemError)) throw error;
  console.log(JSON.stringify({ refused: error.status }));
}
