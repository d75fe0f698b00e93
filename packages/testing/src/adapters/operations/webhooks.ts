/** Creating, listing and deleting webhooks. */

import { maxWebhookUrlLength } from "@tenure/core/transport"
import { describe, expect } from "vitest"
import { expectFailure, expectSuccess, fieldsOf, uuid, webhookOf } from "../../support/http.ts"
import { type ServerTest, webhooks } from "../harness.ts"

/** Returns a URL with this many characters. */
const urlOf = (length: number): string => "https://receiver.example/".padEnd(length, "a")

/** Declares the tests. */
export const webhookTests = (test: ServerTest): void => {
  describe("webhooks", () => {
    test("are created with a unique id and secret, and without a total", async ({ call }) => {
      const url = "https://receiver.example/hooks?a=b"
      const first = expectSuccess(await call("POST", webhooks, { body: { url } }), {
        data: {
          url,
          id: expect.stringMatching(uuid),
          secret: expect.stringMatching(/^whsec_/),
        },
      })
      const second = await call("POST", webhooks, { body: { url } })
      expect(second.body).not.toMatchObject({ data: first.data })
      expect(Object.keys(fieldsOf(first["data"]))).toEqual(["url", "id", "secret"])
    })

    test("are listed with their secrets, oldest first", async ({ call }) => {
      expectSuccess(await call("GET", webhooks), { total: 0, data: [] })
      const created = []
      for (const name of ["a", "b", "c"]) {
        const url = `https://receiver.example/${name}`
        const response = await call("POST", webhooks, { body: { url } })
        created.push(fieldsOf(response.body)["data"])
      }
      expectSuccess(await call("GET", webhooks), { total: 3, data: created })
    })

    test("are deleted, which returns data null", async ({ call }) => {
      const body = { url: "https://receiver.example/" }
      const created = await call("POST", webhooks, { body })
      const path = `${webhooks}/${webhookOf(created).id}`
      expectSuccess(await call("DELETE", path), { data: null })
      expectSuccess(await call("GET", webhooks), { total: 0, data: [] })
      expectFailure(await call("DELETE", path), 404, "WEBHOOK_NOT_FOUND")
    })

    test("are deleted by their id in upper case too, and not by an invalid id", async ({
      call,
    }) => {
      const body = { url: "https://receiver.example/" }
      const created = await call("POST", webhooks, { body })
      for (const id of ["1", "null", "%00", "__proto__", crypto.randomUUID()]) {
        const path = `${webhooks}/${id}`
        expectFailure(await call("DELETE", path), 404, "WEBHOOK_NOT_FOUND")
      }
      const path = `${webhooks}/${webhookOf(created).id.toUpperCase()}`
      expectSuccess(await call("DELETE", path), { data: null })
    })

    test("cannot be deleted through another project", async ({ call, tenure }) => {
      const url = "https://receiver.example/"
      const { id } = await tenure.webhooks.create({ projectId: "p2", url })
      const path = `${webhooks}/${id}`
      expectFailure(await call("DELETE", path), 404, "WEBHOOK_NOT_FOUND")
      expect(await tenure.webhooks.list({ projectId: "p2" })).toHaveLength(1)
    })

    test("need a valid public http or https URL without credentials", async ({ call }) => {
      const urls: ReadonlyArray<unknown> = [
        undefined,
        null,
        7,
        "",
        {},
        ["https://receiver.example/"],
        "receiver.example",
        "/hooks",
        "//receiver.example/hooks",
        "ftp://receiver.example/",
        "javascript:alert(1)",
        "https:receiver.example",
        "https:///receiver.example",
        "https://receiver\u{200b}.example/",
        "file:///etc/passwd",
        "https://",
        "https://user@receiver.example/",
        "https://user:pass@receiver.example/",
        "https://receiver.example/a b",
        "https://receiver.example/\n",
        urlOf(maxWebhookUrlLength + 1),
        "http://127.0.0.1/",
        "http://127.1:8080/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost:3000/",
        "http://0.0.0.0/",
      ]
      for (const url of urls) {
        expectFailure(await call("POST", webhooks, { body: { url } }), 422, "VALIDATION_ERROR")
      }
      expectSuccess(await call("GET", webhooks), { total: 0, data: [] })
    })

    test("can have any public URL that is not too long", async ({ call }) => {
      const urls = [
        "http://receiver.example",
        "https://receiver.example:8443/a/b?c=d#e",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://例え.jp/フック",
        urlOf(maxWebhookUrlLength),
      ]
      for (const url of urls) {
        const response = await call("POST", webhooks, { body: { url } })
        expect(response.body).toMatchObject({ code: 200, data: { url } })
      }
    })

    test.with({ webhooks: { requireHttps: true } })(
      "can be required to use https",
      async ({ call }) => {
        const http = await call("POST", webhooks, { body: { url: "http://receiver.example/" } })
        expectFailure(http, 422, "VALIDATION_ERROR")
        const https = await call("POST", webhooks, { body: { url: "https://receiver.example/" } })
        expect(https.status).toBe(200)
      },
    )

    test("are limited to 50 for each project by default", async ({ call }) => {
      const body = { url: "https://receiver.example/" }
      for (let count = 1; count <= 50; count++) {
        expect((await call("POST", webhooks, { body })).status).toBe(200)
      }
      expectFailure(await call("POST", webhooks, { body }), 422, "VALIDATION_ERROR")
    })
  })
}
