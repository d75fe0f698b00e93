/**
 * The OpenAPI document, printed so that servers need not load schemas to show it. `npm run generate`
 * writes this module.
 */

import type { OpenApiDocument } from "../../openapi/types.ts"



/** The OpenAPI document of the whole API, for a server that has it at its root. */
export const document: OpenApiDocument = {
  "openapi": "3.1.0",
  "info": {
    "title": "Tenure",
    "version": "2",
    "description": "Sets the end dates of memberships, and notifies webhooks of every change. Every response has the same envelope; its `request_id` identifies the request. Objects may get further properties in the future.",
    "license": {
      "name": "MIT",
      "identifier": "MIT"
    },
    "contact": {
      "name": "Tenure",
      "url": "https://github.com/tenure/tenure/issues"
    }
  },
  "servers": [
    {
      "url": "/",
      "description": "This server."
    }
  ],
  "tags": [
    {
      "name": "Memberships",
      "description": "Who is a member of a project, and until when."
    },
    {
      "name": "Projects",
      "description": "What memberships, webhooks and keys belong to."
    },
    {
      "name": "Webhooks",
      "description": "Who is notified of the events of a project."
    },
    {
      "name": "Events",
      "description": "What happened in a project, and who was notified of it."
    },
    {
      "name": "Real time",
      "description": "The feed as it happens."
    },
    {
      "name": "API keys",
      "description": "Who may call the API, and what they may do."
    },
    {
      "name": "Audit trail",
      "description": "Who changed what, beside the changes of a project."
    },
    {
      "name": "Identity",
      "description": "Who sends a request."
    },
    {
      "name": "Status",
      "description": "How the server is doing, for its operators."
    },
    {
      "name": "Documentation",
      "description": "How the API is called."
    },
    {
      "name": "Notifications",
      "description": "Requests to webhooks, each repeated until it is answered with a 2xx status within 15 seconds."
    }
  ],
  "paths": {
    "/v2/projects/{project_id}/memberships/{user_id}/extend": {
      "patch": {
        "operationId": "memberships.extend",
        "summary": "Extend a membership",
        "description": "Sets the end date of a membership, which may have expired. `new_end_date` is the end date afterwards: with the mode `never_shorten`, it may be later than `extend`.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "user_id",
            "in": "path",
            "description": "The id of the user.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^[0-9]{1,64}$",
              "examples": [
                "1001"
              ]
            },
            "example": "1001"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/Extension"
              },
              "example": {
                "extend": "2099-01-01T00:00:00.000Z"
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The membership was extended.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The membership was extended."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Extended"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 200,
                  "message": "The membership was extended.",
                  "total": 1,
                  "data": {
                    "new_end_date": "2099-01-01T00:00:00.000Z"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrMembershipNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/EndDateConflictOrIdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidEndDateOrEndDateNotInFutureOrInvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/memberships/extend": {
      "patch": {
        "operationId": "memberships.extendAll",
        "summary": "Extend all memberships",
        "description": "Sets the end date of all memberships of a project. `total` is the number of memberships whose end date was set.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/BulkExtension"
              },
              "example": {
                "extend": "2099-01-01T00:00:00.000Z"
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "All memberships of the project were extended.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "All memberships of the project were extended."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/BulkExtended"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/extend",
                  "code": 200,
                  "message": "All memberships of the project were extended.",
                  "total": 1,
                  "data": {
                    "new_end_date": "2099-01-01T00:00:00.000Z",
                    "would_shorten": 1
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidEndDateOrEndDateNotInFutureOrInvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/memberships/import": {
      "post": {
        "operationId": "memberships.import",
        "summary": "Import memberships",
        "description": "Creates memberships of different users, or sets the end dates of those that exist: all of them, or none. `total` is the number of lines. Needs the role `operator`.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/x-ndjson": {
              "schema": {
                "type": "string",
                "$ref": "#/components/schemas/Import"
              },
              "example": "{\"user_id\":\"1001\",\"end_date\":\"2099-01-01T00:00:00.000Z\"}\n{\"user_id\":\"1002\",\"end_date\":4070908800000}\n"
            }
          }
        },
        "responses": {
          "200": {
            "description": "The memberships were imported.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The memberships were imported."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "null"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/memberships/import",
                  "code": 200,
                  "message": "The memberships were imported.",
                  "total": 1,
                  "data": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrInvalidLinesOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/memberships": {
      "get": {
        "operationId": "memberships.list",
        "summary": "List memberships",
        "description": "Returns the memberships of a project in the order of their user ids, compared as text; with `state`, only those that are active, or only those that have expired. With `ending_before`, they are in the order of their end dates, and a page may have fewer than `limit`, or none, before the last.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          },
          {
            "name": "state",
            "in": "query",
            "description": "Whether the end date is over.",
            "required": false,
            "schema": {
              "$ref": "#/components/schemas/MembershipState"
            }
          },
          {
            "name": "user_ids",
            "in": "query",
            "description": "Only the memberships of these users: at most 1,000 user ids, each 1 to 64 decimal digits, joined by commas.",
            "required": false,
            "schema": {
              "examples": [
                "1001,1002"
              ],
              "type": "string"
            }
          },
          {
            "name": "ending_before",
            "in": "query",
            "description": "Only active memberships that end before this time, soonest first. Not with `state` or `user_ids`.",
            "required": false,
            "schema": {
              "$ref": "#/components/schemas/Instant"
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The memberships of the project.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The memberships of the project."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/Membership"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/memberships",
                  "code": 200,
                  "message": "The memberships of the project.",
                  "total": 1,
                  "data": [
                    {
                      "user_id": "1001",
                      "end_date": "2099-01-01T00:00:00.000Z",
                      "state": "active"
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/memberships/{user_id}": {
      "get": {
        "operationId": "memberships.get",
        "summary": "Get a membership",
        "description": "Returns a membership.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "user_id",
            "in": "path",
            "description": "The id of the user.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^[0-9]{1,64}$",
              "examples": [
                "1001"
              ]
            },
            "example": "1001"
          }
        ],
        "responses": {
          "200": {
            "description": "The membership.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The membership."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Membership"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/memberships/1001",
                  "code": 200,
                  "message": "The membership.",
                  "data": {
                    "user_id": "1001",
                    "end_date": "2099-01-01T00:00:00.000Z",
                    "state": "active"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrMembershipNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "put": {
        "operationId": "memberships.grant",
        "summary": "Grant a membership",
        "description": "Creates a membership, or sets the end date of an existing one. Needs the role `operator`.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "user_id",
            "in": "path",
            "description": "The id of the user.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^[0-9]{1,64}$",
              "examples": [
                "1001"
              ]
            },
            "example": "1001"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/Grant"
              },
              "example": {
                "end_date": "2099-01-01T00:00:00.000Z"
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The membership was granted.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The membership was granted."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Membership"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PUT",
                  "path": "/v2/projects/demo/memberships/1001",
                  "code": 200,
                  "message": "The membership was granted.",
                  "data": {
                    "user_id": "1001",
                    "end_date": "2099-01-01T00:00:00.000Z",
                    "state": "active"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "delete": {
        "operationId": "memberships.end",
        "summary": "End a membership",
        "description": "Removes a membership. The user can be granted another one. With `erase=true`, also removes the user id from the history and from events, and succeeds if the membership has ended. Needs the role `operator`.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "user_id",
            "in": "path",
            "description": "The id of the user.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^[0-9]{1,64}$",
              "examples": [
                "1001"
              ]
            },
            "example": "1001"
          },
          {
            "name": "erase",
            "in": "query",
            "description": "Whether to erase the person, which needs the role `admin`.",
            "required": false,
            "schema": {
              "type": "string",
              "enum": [
                "true",
                "false"
              ]
            }
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The membership was ended.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The membership was ended."
                      ]
                    },
                    "data": {
                      "type": "null"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "DELETE",
                  "path": "/v2/projects/demo/memberships/1001",
                  "code": 200,
                  "message": "The membership was ended.",
                  "data": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrMembershipNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/memberships/{user_id}/history": {
      "get": {
        "operationId": "memberships.history",
        "summary": "List the changes of a membership",
        "description": "Returns the changes of a membership, newest first, also of one that has ended; among them the bulk extensions that applied to it. Needs the role `operator`.",
        "tags": [
          "Memberships"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "user_id",
            "in": "path",
            "description": "The id of the user.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^[0-9]{1,64}$",
              "examples": [
                "1001"
              ]
            },
            "example": "1001"
          },
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The changes of the membership, newest first.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The changes of the membership, newest first."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/MembershipChange"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/memberships/1001/history",
                  "code": 200,
                  "message": "The changes of the membership, newest first.",
                  "total": 1,
                  "data": [
                    {
                      "at": "2099-01-01T00:00:00.000Z",
                      "action": "granted",
                      "from": "2099-01-01T00:00:00.000Z",
                      "to": "2099-01-01T00:00:00.000Z",
                      "key_id": null,
                      "key_name": null,
                      "request_id": null,
                      "reason": null
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrMembershipNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects": {
      "get": {
        "operationId": "projects.list",
        "summary": "List projects",
        "description": "Returns the projects that the key opens, in the order of their ids, compared as text.",
        "tags": [
          "Projects"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The projects.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The projects."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/ListedProject"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects",
                  "code": 200,
                  "message": "The projects.",
                  "total": 1,
                  "data": [
                    {
                      "id": "demo",
                      "memberships": 1,
                      "webhooks": 1
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}": {
      "put": {
        "operationId": "projects.create",
        "summary": "Create a project",
        "description": "Creates a project. Does nothing if it exists. Needs the role `admin`.",
        "tags": [
          "Projects"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "An id of your own: 1 to 255 characters, none of them a control character.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The project exists.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The project exists."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Project"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PUT",
                  "path": "/v2/projects/demo",
                  "code": 200,
                  "message": "The project exists.",
                  "data": {
                    "id": "demo",
                    "memberships": 1,
                    "webhooks": 1,
                    "last_bulk_end_date": "2099-01-01T00:00:00.000Z"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "get": {
        "operationId": "projects.get",
        "summary": "Get a project",
        "description": "Returns a project.",
        "tags": [
          "Projects"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          }
        ],
        "responses": {
          "200": {
            "description": "The project.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The project."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Project"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo",
                  "code": 200,
                  "message": "The project.",
                  "data": {
                    "id": "demo",
                    "memberships": 1,
                    "webhooks": 1,
                    "last_bulk_end_date": "2099-01-01T00:00:00.000Z"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "delete": {
        "operationId": "projects.delete",
        "summary": "Delete a project",
        "description": "Deletes a project with its memberships, webhooks, events and deliveries. API keys do not open it any more, even if it is created again. Needs the role `admin`.",
        "tags": [
          "Projects"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The project was deleted.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The project was deleted."
                      ]
                    },
                    "data": {
                      "type": "null"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "DELETE",
                  "path": "/v2/projects/demo",
                  "code": 200,
                  "message": "The project was deleted.",
                  "data": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/audit": {
      "get": {
        "operationId": "projects.audit",
        "summary": "List the changes of a project",
        "description": "Returns who changed memberships and webhooks of a project, newest first, for as long as the server keeps it. Needs the role `operator`.",
        "tags": [
          "Projects"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The audit trail of the project, newest first.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The audit trail of the project, newest first."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/AuditRow"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/audit",
                  "code": 200,
                  "message": "The audit trail of the project, newest first.",
                  "total": 1,
                  "data": [
                    {
                      "at": "2099-01-01T00:00:00.000Z",
                      "action": "granted",
                      "from": "2099-01-01T00:00:00.000Z",
                      "to": "2099-01-01T00:00:00.000Z",
                      "key_id": null,
                      "key_name": null,
                      "request_id": null,
                      "reason": null,
                      "user_id": "1001",
                      "subject": null
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks": {
      "post": {
        "operationId": "webhooks.create",
        "summary": "Register a webhook",
        "description": "Registers a URL, which is notified of the events of the project from now on.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/NewWebhook"
              },
              "example": {
                "url": "https://receiver.example/hooks"
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The webhook was created.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhook was created."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Webhook"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/integrations/webhooks",
                  "code": 200,
                  "message": "The webhook was created.",
                  "data": {
                    "url": "https://receiver.example/hooks",
                    "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatchOrInvalidWebhookUrlOrWebhookLimitReached"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "get": {
        "operationId": "webhooks.list",
        "summary": "List webhooks",
        "description": "Returns the webhooks of a project, oldest first.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          }
        ],
        "responses": {
          "200": {
            "description": "The webhooks of the project.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhooks of the project."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/Webhook"
                      }
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/integrations/webhooks",
                  "code": 200,
                  "message": "The webhooks of the project.",
                  "total": 1,
                  "data": [
                    {
                      "url": "https://receiver.example/hooks",
                      "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                      "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                    }
                  ]
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}": {
      "delete": {
        "operationId": "webhooks.delete",
        "summary": "Delete a webhook",
        "description": "Deletes a webhook. No further attempt to notify it starts.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The webhook was deleted.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhook was deleted."
                      ]
                    },
                    "data": {
                      "type": "null"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "DELETE",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "code": 200,
                  "message": "The webhook was deleted.",
                  "data": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/IdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "get": {
        "operationId": "webhooks.get",
        "summary": "Find a webhook",
        "description": "Returns a webhook, what it is for, how its latest attempts went, and its secret: the audit trail says who has asked for it.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          }
        ],
        "responses": {
          "200": {
            "description": "The webhook.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhook."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/WebhookDetails"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "code": 200,
                  "message": "The webhook.",
                  "data": {
                    "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "url": "https://receiver.example/hooks",
                    "event_types": null,
                    "created_at": "2099-01-01T00:00:00.000Z",
                    "disabled_at": null,
                    "failing_since": null,
                    "failures": 0,
                    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/health": {
      "get": {
        "operationId": "webhooks.health",
        "summary": "List how webhooks are doing",
        "description": "Returns the webhooks of a project, oldest first, without their secrets: what they are for, and how their latest attempts went.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          }
        ],
        "responses": {
          "200": {
            "description": "The webhooks of the project, without their secrets.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhooks of the project, without their secrets."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/WebhookHealth"
                      }
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/integrations/health",
                  "code": 200,
                  "message": "The webhooks of the project, without their secrets.",
                  "total": 1,
                  "data": [
                    {
                      "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                      "url": "https://receiver.example/hooks",
                      "event_types": null,
                      "created_at": "2099-01-01T00:00:00.000Z",
                      "disabled_at": null,
                      "failing_since": null,
                      "failures": 0
                    }
                  ]
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/ping": {
      "post": {
        "operationId": "webhooks.ping",
        "summary": "Try out a webhook",
        "description": "Sends the event webhook.ping to one webhook. Needs the role `operator`.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The event webhook.ping was published.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The event webhook.ping was published."
                      ]
                    },
                    "data": {
                      "type": "object",
                      "properties": {
                        "event_id": {
                          "$ref": "#/components/schemas/Uuid",
                          "description": "The id of the event."
                        }
                      },
                      "required": [
                        "event_id"
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8/ping",
                  "code": 200,
                  "message": "The event webhook.ping was published.",
                  "data": {
                    "event_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/WebhookDisabledOrIdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/enable": {
      "post": {
        "operationId": "webhooks.enable",
        "summary": "Enable a webhook",
        "description": "Enables a webhook that was disabled, and does nothing to others. Needs the role `operator`.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The webhook is enabled.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhook is enabled."
                      ]
                    },
                    "data": {
                      "type": "null"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8/enable",
                  "code": 200,
                  "message": "The webhook is enabled.",
                  "data": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/rotate": {
      "post": {
        "operationId": "webhooks.rotate",
        "summary": "Rotate a secret",
        "description": "Replaces the secret of a webhook. The previous one also signs for a day. Needs the role `operator`.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The webhook has a new secret.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The webhook has a new secret."
                      ]
                    },
                    "data": {
                      "type": "object",
                      "properties": {
                        "secret": {
                          "type": "string",
                          "description": "The secret that signs notifications: `whsec_` and base64. `unreadable_` and a UUID, which nobody signs with, stand for one that the server cannot read.",
                          "examples": [
                            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                          ]
                        },
                        "previous_until": {
                          "$ref": "#/components/schemas/Instant"
                        }
                      },
                      "required": [
                        "secret",
                        "previous_until"
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8/rotate",
                  "code": 200,
                  "message": "The webhook has a new secret.",
                  "data": {
                    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                    "previous_until": "2099-01-01T00:00:00.000Z"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries": {
      "get": {
        "operationId": "webhooks.deliveries",
        "summary": "List deliveries",
        "description": "Returns what was sent to a webhook, newest first, with every attempt. Needs the role `operator`.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          },
          {
            "name": "state",
            "in": "query",
            "description": "Whether it waits for an attempt, or how it has ended.",
            "required": false,
            "schema": {
              "type": "string",
              "enum": [
                "waiting",
                "delivered",
                "failed",
                "cancelled"
              ],
              "examples": [
                "delivered"
              ]
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The deliveries to the webhook, newest first.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The deliveries to the webhook, newest first."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/Delivery"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8/deliveries",
                  "code": 200,
                  "message": "The deliveries to the webhook, newest first.",
                  "total": 1,
                  "data": [
                    {
                      "event_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                      "type": "payment.completed",
                      "state": "delivered",
                      "due_at": null,
                      "attempts": [
                        {
                          "at": "2099-01-01T00:00:00.000Z",
                          "duration_ms": 84,
                          "status": 204,
                          "error": null
                        }
                      ]
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries/{event_id}": {
      "get": {
        "operationId": "webhooks.delivery",
        "summary": "Find a delivery",
        "description": "Returns the delivery of an event to a webhook: what every attempt sends, and what the receiver has responded. The audit trail says who has asked for it. Needs the role `operator`.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "event_id",
            "in": "path",
            "description": "The id of the event.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          }
        ],
        "responses": {
          "200": {
            "description": "The delivery, with its request and what the receiver responded.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The delivery, with its request and what the receiver responded."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/ShownDelivery"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8/deliveries/6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "code": 200,
                  "message": "The delivery, with its request and what the receiver responded.",
                  "data": {
                    "event_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "type": "payment.completed",
                    "state": "delivered",
                    "due_at": null,
                    "attempts": [
                      {
                        "at": "2099-01-01T00:00:00.000Z",
                        "duration_ms": 84,
                        "status": 204,
                        "error": null,
                        "response_body": ""
                      }
                    ],
                    "request": {
                      "method": "POST",
                      "url": "https://receiver.example/hooks",
                      "headers": {
                        "content-type": "application/json",
                        "user-agent": "Tenure",
                        "webhook-id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                        "webhook-timestamp": null,
                        "webhook-signature": null
                      },
                      "body": "{\"type\":\"payment.completed\",\"timestamp\":\"2099-01-01T00:00:00.000Z\",\"data\":{\"invoice\":\"2099-117\"}}"
                    }
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFoundOrEventNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/replay": {
      "post": {
        "operationId": "webhooks.replay",
        "summary": "Replay deliveries",
        "description": "Sends an event to a webhook again, or now if it waits for its next attempt; or sends all events since a time whose delivery has failed. Needs the role `operator`.",
        "tags": [
          "Webhooks"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "webhook_id",
            "in": "path",
            "description": "The id of the webhook.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/Replay"
              },
              "example": {
                "event_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The number of deliveries that start again.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The number of deliveries that start again."
                      ]
                    },
                    "data": {
                      "type": "object",
                      "properties": {
                        "replayed": {
                          "type": "integer",
                          "minimum": -9007199254740991,
                          "maximum": 9007199254740991,
                          "description": "The number of deliveries that start again.",
                          "examples": [
                            1
                          ]
                        }
                      },
                      "required": [
                        "replayed"
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8/replay",
                  "code": 200,
                  "message": "The number of deliveries that start again.",
                  "data": {
                    "replayed": 1
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrWebhookNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/WebhookDisabledOrIdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/events": {
      "post": {
        "operationId": "events.publish",
        "summary": "Publish an event",
        "description": "Publishes an event of your own to the webhooks of a project. Needs the role `operator`.",
        "tags": [
          "Events"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/Publication"
              },
              "example": {
                "type": "payment.completed",
                "data": null
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The event was published.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The event was published."
                      ]
                    },
                    "data": {
                      "type": "object",
                      "properties": {
                        "id": {
                          "$ref": "#/components/schemas/Uuid",
                          "description": "The id of the event."
                        }
                      },
                      "required": [
                        "id"
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/projects/demo/events",
                  "code": 200,
                  "message": "The event was published.",
                  "data": {
                    "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "get": {
        "operationId": "events.list",
        "summary": "Read the feed",
        "description": "Returns the events of a project after a cursor, in an order in which none is skipped: the next page begins where this one ends, whenever it is asked for. `after=start` begins at the oldest event that is kept; without `after`, the feed begins now. With `Accept: text/event-stream`, it is a stream, which `Last-Event-ID` resumes.",
        "tags": [
          "Events"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          },
          {
            "name": "types",
            "in": "query",
            "description": "Only events of these types, joined by commas.",
            "required": false,
            "schema": {
              "type": "string",
              "examples": [
                "membership.extended,membership.ended"
              ]
            }
          },
          {
            "name": "wait",
            "in": "query",
            "description": "How many seconds to wait when there is no event yet: 0 to 20. Default: 0.",
            "required": false,
            "schema": {
              "type": "string",
              "examples": [
                "20"
              ]
            }
          },
          {
            "name": "data",
            "in": "query",
            "description": "Whether the response has the data of events, and not null. Default: true.",
            "required": false,
            "schema": {
              "type": "string",
              "enum": [
                "true",
                "false"
              ]
            }
          },
          {
            "name": "ticket",
            "in": "query",
            "description": "A ticket, in place of a key.",
            "required": false,
            "schema": {
              "type": "string",
              "examples": [
                "tkt_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"
              ]
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The events after the cursor.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The events after the cursor."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/FeedEvent"
                      }
                    },
                    "next": {
                      "type": "string",
                      "description": "The cursor of the place after these items, for `after`.",
                      "examples": [
                        "bf74eca13f6d.mhk1v2q8.ou.1"
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/events",
                  "code": 200,
                  "message": "The events after the cursor.",
                  "total": 1,
                  "data": [
                    {
                      "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                      "type": "payment.completed",
                      "timestamp": "2099-01-01T00:00:00.000Z",
                      "data": null
                    }
                  ],
                  "next": "bf74eca13f6d.mhk1v2q8.ou.1"
                }
              },
              "text/event-stream": {
                "schema": {
                  "type": "string"
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "410": {
            "$ref": "#/components/responses/CursorExpired"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/projects/{project_id}/events/{event_id}": {
      "get": {
        "operationId": "events.get",
        "summary": "Find an event",
        "description": "Returns an event, and where it was delivered, with every attempt. The audit trail says who has asked for it, unless `data=false` leaves out what the event says. Needs the role `operator`.",
        "tags": [
          "Events"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "project_id",
            "in": "path",
            "description": "The id of the project.",
            "required": true,
            "schema": {
              "type": "string",
              "examples": [
                "demo"
              ]
            },
            "example": "demo"
          },
          {
            "name": "event_id",
            "in": "path",
            "description": "The id of the event.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "data",
            "in": "query",
            "description": "Whether the response has the data of events, and not null. Default: true.",
            "required": false,
            "schema": {
              "type": "string",
              "enum": [
                "true",
                "false"
              ]
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The event and its deliveries.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The event and its deliveries."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/PublishedEvent"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/projects/demo/events/6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "code": 200,
                  "message": "The event and its deliveries.",
                  "data": {
                    "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "type": "payment.completed",
                    "timestamp": "2099-01-01T00:00:00.000Z",
                    "data": null,
                    "deliveries": [
                      {
                        "webhook_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                        "state": "delivered",
                        "due_at": null,
                        "attempts": [
                          {
                            "at": "2099-01-01T00:00:00.000Z",
                            "duration_ms": 84,
                            "status": 204,
                            "error": null
                          }
                        ]
                      }
                    ]
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFoundOrEventNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/realtime/tickets": {
      "post": {
        "operationId": "realtime.issueTicket",
        "summary": "Issue a ticket",
        "description": "Issues a ticket for a browser, which cannot send the key: within 60 seconds, it opens one connection that follows the feed.",
        "tags": [
          "Real time"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/NewTicket"
              },
              "example": {
                "projects": [
                  "demo"
                ]
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The ticket was issued. It can be used once.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The ticket was issued. It can be used once."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Ticket"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/realtime/tickets",
                  "code": 200,
                  "message": "The ticket was issued. It can be used once.",
                  "data": {
                    "ticket": "tkt_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE",
                    "expires_at": "2099-01-01T00:00:00.000Z"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/api-keys": {
      "get": {
        "operationId": "apiKeys.list",
        "summary": "List API keys",
        "description": "Returns API keys, also revoked and expired ones, oldest first: those that open no project that the own key does not open. Needs the role `admin`.",
        "tags": [
          "API keys"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The API keys.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The API keys."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/ApiKey"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/api-keys",
                  "code": 200,
                  "message": "The API keys.",
                  "total": 1,
                  "data": [
                    {
                      "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                      "name": "nightly import",
                      "role": "client",
                      "projects": [
                        "demo"
                      ],
                      "created_at": "2099-01-01T00:00:00.000Z",
                      "expires_at": "2099-01-01T00:00:00.000Z",
                      "revoked_at": "2099-01-01T00:00:00.000Z",
                      "last_used_at": "2099-01-01T00:00:00.000Z"
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      },
      "post": {
        "operationId": "apiKeys.issue",
        "summary": "Issue an API key",
        "description": "Issues a key, which may open no project that the own key does not open. Needs the role `admin`.",
        "tags": [
          "API keys"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/NewApiKey"
              },
              "example": {
                "projects": [
                  "demo"
                ],
                "role": "client"
              }
            }
          }
        },
        "responses": {
          "200": {
            "description": "The API key was issued. Its token will not be shown again.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The API key was issued. Its token will not be shown again."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/IssuedApiKey"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "POST",
                  "path": "/v2/api-keys",
                  "code": 200,
                  "message": "The API key was issued. Its token will not be shown again.",
                  "data": {
                    "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "token": "tnr_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ProjectNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "413": {
            "$ref": "#/components/responses/PayloadTooLarge"
          },
          "415": {
            "$ref": "#/components/responses/UnsupportedMediaType"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/api-keys/{key_id}": {
      "delete": {
        "operationId": "apiKeys.revoke",
        "summary": "Revoke an API key",
        "description": "Revokes a key for good. Revoking it again changes nothing. Needs the role `admin`.",
        "tags": [
          "API keys"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "key_id",
            "in": "path",
            "description": "The id of the key.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
            "required": false,
            "schema": {
              "type": "string",
              "pattern": "^[!-~]{1,255}$"
            },
            "example": "invoice-2099-117"
          }
        ],
        "responses": {
          "200": {
            "description": "The API key was revoked.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              },
              "Idempotent-Replayed": {
                "$ref": "#/components/headers/Idempotent-Replayed"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The API key was revoked."
                      ]
                    },
                    "data": {
                      "type": "null"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "DELETE",
                  "path": "/v2/api-keys/6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "code": 200,
                  "message": "The API key was revoked.",
                  "data": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "404": {
            "$ref": "#/components/responses/ApiKeyNotFound"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "409": {
            "$ref": "#/components/responses/IdempotencyInProgress"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInputOrIdempotencyMismatch"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/audit": {
      "get": {
        "operationId": "audit.list",
        "summary": "List changes of projects and keys",
        "description": "Returns who created and deleted projects, and who issued and revoked API keys, newest first. Needs a key that opens all projects. Needs the role `admin`.",
        "tags": [
          "Audit trail"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [
          {
            "name": "limit",
            "in": "query",
            "description": "The most items to return.",
            "required": false,
            "schema": {
              "type": "integer",
              "minimum": 1,
              "maximum": 1000,
              "default": 100,
              "examples": [
                100
              ]
            }
          },
          {
            "name": "after",
            "in": "query",
            "description": "The cursor that the page before has as `next`; without it, the first page.",
            "required": false,
            "schema": {
              "type": "string"
            }
          }
        ],
        "responses": {
          "200": {
            "description": "The audit trail of projects and API keys, newest first.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The audit trail of projects and API keys, newest first."
                      ]
                    },
                    "total": {
                      "type": "integer",
                      "minimum": 0,
                      "maximum": 9007199254740991,
                      "examples": [
                        1
                      ]
                    },
                    "data": {
                      "type": "array",
                      "items": {
                        "$ref": "#/components/schemas/AuditRow"
                      }
                    },
                    "next": {
                      "anyOf": [
                        {
                          "type": "string"
                        },
                        {
                          "type": "null"
                        }
                      ],
                      "description": "The cursor of the next page, for `after`; null on the last page.",
                      "examples": [
                        null
                      ]
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "total",
                    "data",
                    "next"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/audit",
                  "code": 200,
                  "message": "The audit trail of projects and API keys, newest first.",
                  "total": 1,
                  "data": [
                    {
                      "at": "2099-01-01T00:00:00.000Z",
                      "action": "granted",
                      "from": "2099-01-01T00:00:00.000Z",
                      "to": "2099-01-01T00:00:00.000Z",
                      "key_id": null,
                      "key_name": null,
                      "request_id": null,
                      "reason": null,
                      "user_id": "1001",
                      "subject": null
                    }
                  ],
                  "next": null
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/identity": {
      "get": {
        "operationId": "identity.get",
        "summary": "Get the identity",
        "description": "Returns who sends the request, and what they may do.",
        "tags": [
          "Identity"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [],
        "responses": {
          "200": {
            "description": "Who sent the request.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "Who sent the request."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Identity"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/identity",
                  "code": 200,
                  "message": "Who sent the request.",
                  "data": {
                    "key_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "role": "client",
                    "projects": [
                      "demo"
                    ],
                    "read_only": false
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/status": {
      "get": {
        "operationId": "status.get",
        "summary": "Get the status",
        "description": "Returns how the server and its stores are doing. Needs a key that opens all projects. Needs the role `admin`.",
        "tags": [
          "Status"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [],
        "responses": {
          "200": {
            "description": "The status of this server.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "The status of this server."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Status"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/status",
                  "code": 200,
                  "message": "The status of this server.",
                  "data": {
                    "versions": {
                      "tenure": "1.0.0",
                      "api": "v2"
                    },
                    "stores": {
                      "memberships": true,
                      "webhooks": true,
                      "api_keys": true,
                      "deliveries": true,
                      "rate_limits": true
                    },
                    "backlog": {
                      "waiting": 0,
                      "due_for_ms": null
                    },
                    "failed_deliveries": 0,
                    "disabled_webhooks": 0,
                    "suspended_keys": []
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/status/activity": {
      "get": {
        "operationId": "status.activity",
        "summary": "Get the last hour",
        "description": "Returns how many deliveries succeeded and failed, and how many requests were refused, by the minute. They are those of the server that answers, since it was started; of several servers, each counts its own. Needs a key that opens all projects. Needs the role `admin`.",
        "tags": [
          "Status"
        ],
        "security": [
          {
            "bearer": []
          }
        ],
        "parameters": [],
        "responses": {
          "200": {
            "description": "What this server has done in the last hour.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "properties": {
                    "ok": {
                      "type": "boolean",
                      "enum": [
                        true
                      ]
                    },
                    "request_id": {
                      "$ref": "#/components/schemas/RequestId"
                    },
                    "method": {
                      "type": "string"
                    },
                    "path": {
                      "type": "string"
                    },
                    "code": {
                      "type": "number",
                      "enum": [
                        200
                      ]
                    },
                    "message": {
                      "type": "string",
                      "examples": [
                        "What this server has done in the last hour."
                      ]
                    },
                    "data": {
                      "$ref": "#/components/schemas/Activity"
                    }
                  },
                  "required": [
                    "ok",
                    "request_id",
                    "method",
                    "path",
                    "code",
                    "message",
                    "data"
                  ]
                },
                "example": {
                  "ok": true,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "GET",
                  "path": "/v2/status/activity",
                  "code": 200,
                  "message": "What this server has done in the last hour.",
                  "data": {
                    "minutes": [
                      {
                        "at": "2099-01-01T00:00:00.000Z",
                        "delivered": 0,
                        "failed": 0,
                        "refused": 0
                      }
                    ],
                    "refusals": [
                      {
                        "key_id": null,
                        "refused": 0
                      }
                    ]
                  }
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "401": {
            "$ref": "#/components/responses/Unauthorized"
          },
          "403": {
            "$ref": "#/components/responses/Forbidden"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "422": {
            "$ref": "#/components/responses/InvalidInput"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/openapi.json": {
      "get": {
        "operationId": "docs.document",
        "summary": "Get the OpenAPI document",
        "description": "Returns this document, without an envelope. Needs no key.",
        "tags": [
          "Documentation"
        ],
        "security": [],
        "parameters": [],
        "responses": {
          "200": {
            "description": "Success.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "description": "An OpenAPI 3.1 document."
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/asyncapi.json": {
      "get": {
        "operationId": "docs.asyncDocument",
        "summary": "Get the AsyncAPI document",
        "description": "Returns what the feed and webhooks send, without an envelope. Needs no key.",
        "tags": [
          "Documentation"
        ],
        "security": [],
        "parameters": [],
        "responses": {
          "200": {
            "description": "Success.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "application/json": {
                "schema": {
                  "type": "object",
                  "description": "An AsyncAPI 3 document."
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    },
    "/v2/docs": {
      "get": {
        "operationId": "docs.page",
        "summary": "Read the documentation",
        "description": "Returns this document as a page to read. Needs no key.",
        "tags": [
          "Documentation"
        ],
        "security": [],
        "parameters": [],
        "responses": {
          "200": {
            "description": "Success.",
            "headers": {
              "X-RateLimit-Limit": {
                "$ref": "#/components/headers/X-RateLimit-Limit"
              },
              "X-RateLimit-Remaining": {
                "$ref": "#/components/headers/X-RateLimit-Remaining"
              },
              "X-RateLimit-Reset": {
                "$ref": "#/components/headers/X-RateLimit-Reset"
              }
            },
            "content": {
              "text/html": {
                "schema": {
                  "type": "string"
                }
              }
            }
          },
          "400": {
            "$ref": "#/components/responses/MalformedRequest"
          },
          "405": {
            "$ref": "#/components/responses/MethodNotAllowed"
          },
          "408": {
            "$ref": "#/components/responses/RequestTimeout"
          },
          "429": {
            "$ref": "#/components/responses/RateLimited"
          },
          "431": {
            "$ref": "#/components/responses/RequestHeadersTooLarge"
          },
          "500": {
            "$ref": "#/components/responses/InternalError"
          },
          "503": {
            "$ref": "#/components/responses/StoreUnavailable"
          }
        }
      }
    }
  },
  "webhooks": {
    "membership.granted": {
      "post": {
        "operationId": "on.membership.granted",
        "summary": "A membership was created, or its end date set to any date.",
        "description": "A membership was created, or its end date set to any date.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipGrantedEvent"
              },
              "example": {
                "type": "membership.granted",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "user_id": "1001",
                  "new_end_date": "2099-01-01T00:00:00.000Z",
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "reason": "prepaid for two years",
                  "sequence": 3000000002
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "memberships.imported": {
      "post": {
        "operationId": "on.memberships.imported",
        "summary": "Memberships were created or set by an import.",
        "description": "Memberships were created or set by an import.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipsImportedEvent"
              },
              "example": {
                "type": "memberships.imported",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "total": 1,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "reason": "prepaid for two years",
                  "sequence": 3000000002
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "membership.extended": {
      "post": {
        "operationId": "on.membership.extended",
        "summary": "A membership was extended.",
        "description": "A membership was extended.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipExtendedEvent"
              },
              "example": {
                "type": "membership.extended",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "user_id": "1001",
                  "new_end_date": "2099-01-01T00:00:00.000Z",
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "reason": "prepaid for two years",
                  "sequence": 3000000002
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "memberships.extended": {
      "post": {
        "operationId": "on.memberships.extended",
        "summary": "All memberships of the project were extended.",
        "description": "All memberships of the project were extended.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipsExtendedEvent"
              },
              "example": {
                "type": "memberships.extended",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "new_end_date": "2099-01-01T00:00:00.000Z",
                  "mode": "never_shorten",
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "reason": "prepaid for two years",
                  "sequence": 3000000002
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "membership.ended": {
      "post": {
        "operationId": "on.membership.ended",
        "summary": "A membership was removed.",
        "description": "A membership was removed.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipEndedEvent"
              },
              "example": {
                "type": "membership.ended",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "user_id": "1001",
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "reason": "prepaid for two years",
                  "sequence": 3000000002
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "membership.expiring": {
      "post": {
        "operationId": "on.membership.expiring",
        "summary": "A membership ends soon.",
        "description": "A membership ends soon.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipExpiringEvent"
              },
              "example": {
                "type": "membership.expiring",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "user_id": "1001",
                  "end_date": "2099-01-01T00:00:00.000Z",
                  "sequence": 3000000002,
                  "reminder": 604800
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "membership.expired": {
      "post": {
        "operationId": "on.membership.expired",
        "summary": "A membership has ended at its end date.",
        "description": "A membership has ended at its end date.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/MembershipExpiredEvent"
              },
              "example": {
                "type": "membership.expired",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "user_id": "1001",
                  "end_date": "2099-01-01T00:00:00.000Z",
                  "sequence": 3000000002
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "webhook.ping": {
      "post": {
        "operationId": "on.webhook.ping",
        "summary": "The webhook is tried out.",
        "description": "The webhook is tried out.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/WebhookPingEvent"
              },
              "example": {
                "type": "webhook.ping",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "webhook_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "webhook.disabled": {
      "post": {
        "operationId": "on.webhook.disabled",
        "summary": "Another webhook of the project was disabled.",
        "description": "Another webhook of the project was disabled.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/WebhookDisabledEvent"
              },
              "example": {
                "type": "webhook.disabled",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                  "project_id": "demo",
                  "webhook_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "reason": "gone"
                }
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    },
    "custom": {
      "post": {
        "operationId": "on.custom",
        "summary": "The host published an event of its own.",
        "description": "The host published an event of its own.",
        "tags": [
          "Notifications"
        ],
        "security": [],
        "parameters": [
          {
            "name": "webhook-id",
            "in": "header",
            "description": "The id of the event, the same in every attempt to deliver it.",
            "required": true,
            "schema": {
              "$ref": "#/components/schemas/Uuid"
            },
            "example": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
          },
          {
            "name": "webhook-timestamp",
            "in": "header",
            "description": "The time of the attempt, in seconds since 1970.",
            "required": true,
            "schema": {
              "type": "integer",
              "minimum": 0
            },
            "example": 4070908800
          },
          {
            "name": "webhook-signature",
            "in": "header",
            "description": "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
            "required": true,
            "schema": {
              "type": "string",
              "pattern": "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$"
            },
            "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
          }
        ],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": {
                "$ref": "#/components/schemas/CustomEvent"
              },
              "example": {
                "type": "payment.completed",
                "timestamp": "2099-01-01T00:00:00.000Z",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": null
              }
            }
          }
        },
        "responses": {
          "410": {
            "description": "The webhook is disabled, and gets no further events."
          },
          "2XX": {
            "description": "The event was received."
          },
          "default": {
            "description": "The event is sent again later."
          }
        }
      }
    }
  },
  "components": {
    "headers": {
      "X-RateLimit-Limit": {
        "description": "The most requests in the current window.",
        "required": true,
        "schema": {
          "type": "integer",
          "minimum": 0,
          "examples": [
            100
          ]
        }
      },
      "X-RateLimit-Remaining": {
        "description": "How many requests are left in the current window.",
        "required": true,
        "schema": {
          "type": "integer",
          "minimum": 0,
          "examples": [
            99
          ]
        }
      },
      "X-RateLimit-Reset": {
        "description": "When the window ends, in seconds since 1970.",
        "required": true,
        "schema": {
          "type": "integer",
          "minimum": 0,
          "examples": [
            4070908800
          ]
        }
      },
      "Allow": {
        "description": "The methods that the path allows.",
        "required": true,
        "schema": {
          "type": "string",
          "examples": [
            "GET, POST"
          ]
        }
      },
      "Retry-After": {
        "description": "How long to wait, in seconds.",
        "required": true,
        "schema": {
          "type": "integer",
          "minimum": 1,
          "examples": [
            3
          ]
        }
      },
      "WWW-Authenticate": {
        "description": "The scheme of authentication.",
        "required": true,
        "schema": {
          "type": "string",
          "examples": [
            "Bearer"
          ]
        }
      },
      "Idempotent-Replayed": {
        "description": "Sent if an earlier request with the same idempotency key made the change.",
        "required": false,
        "schema": {
          "type": "string",
          "enum": [
            "true"
          ]
        }
      }
    },
    "responses": {
      "MalformedRequest": {
        "description": "The request is not valid HTTP, or its body is not a JSON object in UTF-8.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/MalformedRequest"
            },
            "examples": {
              "MalformedRequest": {
                "summary": "The request is not valid HTTP, or its body is not a JSON object in UTF-8.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 400,
                  "error": {
                    "error_code": "MALFORMED_REQUEST",
                    "message": "The body is not valid JSON."
                  }
                }
              }
            }
          }
        }
      },
      "Unauthorized": {
        "description": "The bearer token is missing or invalid.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          },
          "WWW-Authenticate": {
            "$ref": "#/components/headers/WWW-Authenticate"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/Unauthorized"
            },
            "examples": {
              "Unauthorized": {
                "summary": "The bearer token is missing or invalid.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 401,
                  "error": {
                    "error_code": "UNAUTHORIZED",
                    "message": "A valid bearer token is required."
                  }
                }
              }
            }
          }
        }
      },
      "ProjectNotFoundOrMembershipNotFound": {
        "description": "The key does not open the project, or there is no such project. Or: The user has no membership in the project.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/ProjectNotFound"
                },
                {
                  "$ref": "#/components/schemas/MembershipNotFound"
                }
              ]
            },
            "examples": {
              "ProjectNotFound": {
                "summary": "The key does not open the project, or there is no such project.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "PROJECT_NOT_FOUND",
                    "message": "The project was not found."
                  }
                }
              },
              "MembershipNotFound": {
                "summary": "The user has no membership in the project.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "MEMBERSHIP_NOT_FOUND",
                    "message": "The membership was not found."
                  }
                }
              }
            }
          }
        }
      },
      "MethodNotAllowed": {
        "description": "The path does not allow the method.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          },
          "Allow": {
            "$ref": "#/components/headers/Allow"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/MethodNotAllowed"
            },
            "examples": {
              "MethodNotAllowed": {
                "summary": "The path does not allow the method.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 405,
                  "error": {
                    "error_code": "METHOD_NOT_ALLOWED",
                    "message": "This path takes PATCH only."
                  }
                }
              }
            }
          }
        }
      },
      "RequestTimeout": {
        "description": "The request did not arrive in time.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/RequestTimeout"
            },
            "examples": {
              "RequestTimeout": {
                "summary": "The request did not arrive in time.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 408,
                  "error": {
                    "error_code": "REQUEST_TIMEOUT",
                    "message": "The request did not arrive in time."
                  }
                }
              }
            }
          }
        }
      },
      "EndDateConflictOrIdempotencyInProgress": {
        "description": "The membership has another end date than `expected_end_date`. Or: The first request with the idempotency key has not ended yet.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/IdempotencyInProgress"
                },
                {
                  "$ref": "#/components/schemas/EndDateConflict"
                }
              ]
            },
            "examples": {
              "EndDateConflict": {
                "summary": "The membership has another end date than `expected_end_date`.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 409,
                  "error": {
                    "error_code": "END_DATE_CONFLICT",
                    "message": "The membership has another end date than expected_end_date.",
                    "current_end_date": "2098-01-01T00:00:00.000Z"
                  }
                }
              },
              "IdempotencyInProgress": {
                "summary": "The first request with the idempotency key has not ended yet.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 409,
                  "error": {
                    "error_code": "IDEMPOTENCY_IN_PROGRESS",
                    "message": "The first request with this idempotency key has not ended yet."
                  }
                }
              }
            }
          }
        }
      },
      "PayloadTooLarge": {
        "description": "The body is too long.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/PayloadTooLarge"
            },
            "examples": {
              "PayloadTooLarge": {
                "summary": "The body is too long.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 413,
                  "error": {
                    "error_code": "PAYLOAD_TOO_LARGE",
                    "message": "The body is longer than 65536 bytes."
                  }
                }
              }
            }
          }
        }
      },
      "UnsupportedMediaType": {
        "description": "The body has another content type, or a content encoding.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/UnsupportedMediaType"
            },
            "examples": {
              "UnsupportedMediaType": {
                "summary": "The body has another content type, or a content encoding.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 415,
                  "error": {
                    "error_code": "UNSUPPORTED_MEDIA_TYPE",
                    "message": "The content type must be application/json."
                  }
                }
              }
            }
          }
        }
      },
      "InvalidEndDateOrEndDateNotInFutureOrInvalidInputOrIdempotencyMismatch": {
        "description": "The date is in neither of the two formats. Or: The date is over. Or: A parameter or a field of the body is invalid. Or: The idempotency key was used for another request.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/IdempotencyMismatch"
                },
                {
                  "$ref": "#/components/schemas/InvalidEndDate"
                },
                {
                  "$ref": "#/components/schemas/EndDateNotInFuture"
                },
                {
                  "$ref": "#/components/schemas/InvalidInput"
                }
              ]
            },
            "examples": {
              "InvalidEndDate": {
                "summary": "The date is in neither of the two formats.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "errors": [
                    {
                      "message": "extend must be a Unix timestamp in milliseconds (13 digits)",
                      "error_code": "VALIDATION_ERROR"
                    },
                    {
                      "message": "extend must be a UTC ISO 8601 date with three millisecond digits (YYYY-MM-DDTHH:mm:ss.sssZ)",
                      "error_code": "VALIDATION_ERROR"
                    }
                  ]
                }
              },
              "EndDateNotInFuture": {
                "summary": "The date is over.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "extend must be a future timestamp"
                  }
                }
              },
              "InvalidInput": {
                "summary": "A parameter or a field of the body is invalid.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "limit must be a whole number from 1 to 1,000"
                  }
                }
              },
              "IdempotencyMismatch": {
                "summary": "The idempotency key was used for another request.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "IDEMPOTENCY_MISMATCH",
                    "message": "The idempotency key was used for another request."
                  }
                }
              }
            }
          }
        }
      },
      "RateLimited": {
        "description": "A rate limit is exceeded, or the key is suspended.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          },
          "Retry-After": {
            "$ref": "#/components/headers/Retry-After"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/RateLimited"
            },
            "examples": {
              "RateLimited": {
                "summary": "A rate limit is exceeded, or the key is suspended.",
                "value": {
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 429,
                  "error": {
                    "message": "Try again in 3 s.",
                    "code": "RATE_LIMIT_EXCEEDED",
                    "retry_after": 3
                  }
                }
              }
            }
          }
        }
      },
      "RequestHeadersTooLarge": {
        "description": "The header fields are too large.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/RequestHeadersTooLarge"
            },
            "examples": {
              "RequestHeadersTooLarge": {
                "summary": "The header fields are too large.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 431,
                  "error": {
                    "error_code": "REQUEST_HEADERS_TOO_LARGE",
                    "message": "The header fields are too large."
                  }
                }
              }
            }
          }
        }
      },
      "InternalError": {
        "description": "The server has a defect.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/InternalError"
            },
            "examples": {
              "InternalError": {
                "summary": "The server has a defect.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 500,
                  "error": {
                    "error_code": "INTERNAL_ERROR",
                    "message": "Something went wrong on our side."
                  }
                }
              }
            }
          }
        }
      },
      "StoreUnavailable": {
        "description": "The service is unavailable for the moment. It is unknown whether a change was made.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          },
          "Retry-After": {
            "$ref": "#/components/headers/Retry-After"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/StoreUnavailable"
            },
            "examples": {
              "StoreUnavailable": {
                "summary": "The service is unavailable for the moment. It is unknown whether a change was made.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 503,
                  "error": {
                    "error_code": "SERVICE_UNAVAILABLE",
                    "message": "The service is unavailable for the moment."
                  }
                }
              }
            }
          }
        }
      },
      "ProjectNotFound": {
        "description": "The key does not open the project, or there is no such project.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/ProjectNotFound"
            },
            "examples": {
              "ProjectNotFound": {
                "summary": "The key does not open the project, or there is no such project.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "PROJECT_NOT_FOUND",
                    "message": "The project was not found."
                  }
                }
              }
            }
          }
        }
      },
      "IdempotencyInProgress": {
        "description": "The first request with the idempotency key has not ended yet.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/IdempotencyInProgress"
            },
            "examples": {
              "IdempotencyInProgress": {
                "summary": "The first request with the idempotency key has not ended yet.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 409,
                  "error": {
                    "error_code": "IDEMPOTENCY_IN_PROGRESS",
                    "message": "The first request with this idempotency key has not ended yet."
                  }
                }
              }
            }
          }
        }
      },
      "Forbidden": {
        "description": "The role of the key does not allow the operation.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/Forbidden"
            },
            "examples": {
              "Forbidden": {
                "summary": "The role of the key does not allow the operation.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 403,
                  "error": {
                    "error_code": "FORBIDDEN",
                    "message": "The role of this key does not allow this."
                  }
                }
              }
            }
          }
        }
      },
      "InvalidInputOrInvalidLinesOrIdempotencyMismatch": {
        "description": "A parameter or a field of the body is invalid. Or: Lines of the body are invalid. The errors are those of the first hundred of them. Or: The idempotency key was used for another request.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/IdempotencyMismatch"
                },
                {
                  "$ref": "#/components/schemas/InvalidLines"
                },
                {
                  "$ref": "#/components/schemas/InvalidInput"
                }
              ]
            },
            "examples": {
              "InvalidInput": {
                "summary": "A parameter or a field of the body is invalid.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "limit must be a whole number from 1 to 1,000"
                  }
                }
              },
              "InvalidLines": {
                "summary": "Lines of the body are invalid. The errors are those of the first hundred of them.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "errors": [
                    {
                      "message": "user_id must be 1 to 64 decimal digits, as text",
                      "error_code": "VALIDATION_ERROR",
                      "line": 2
                    },
                    {
                      "message": "the line must be a JSON object",
                      "error_code": "VALIDATION_ERROR",
                      "line": 7
                    }
                  ]
                }
              },
              "IdempotencyMismatch": {
                "summary": "The idempotency key was used for another request.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "IDEMPOTENCY_MISMATCH",
                    "message": "The idempotency key was used for another request."
                  }
                }
              }
            }
          }
        }
      },
      "InvalidInput": {
        "description": "A parameter or a field of the body is invalid.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/InvalidInput"
            },
            "examples": {
              "InvalidInput": {
                "summary": "A parameter or a field of the body is invalid.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "limit must be a whole number from 1 to 1,000"
                  }
                }
              }
            }
          }
        }
      },
      "InvalidInputOrIdempotencyMismatch": {
        "description": "A parameter or a field of the body is invalid. Or: The idempotency key was used for another request.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/IdempotencyMismatch"
                },
                {
                  "$ref": "#/components/schemas/InvalidInput"
                }
              ]
            },
            "examples": {
              "InvalidInput": {
                "summary": "A parameter or a field of the body is invalid.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "limit must be a whole number from 1 to 1,000"
                  }
                }
              },
              "IdempotencyMismatch": {
                "summary": "The idempotency key was used for another request.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "IDEMPOTENCY_MISMATCH",
                    "message": "The idempotency key was used for another request."
                  }
                }
              }
            }
          }
        }
      },
      "ProjectNotFoundOrWebhookNotFound": {
        "description": "The key does not open the project, or there is no such project. Or: The project has no such webhook.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/ProjectNotFound"
                },
                {
                  "$ref": "#/components/schemas/WebhookNotFound"
                }
              ]
            },
            "examples": {
              "ProjectNotFound": {
                "summary": "The key does not open the project, or there is no such project.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "PROJECT_NOT_FOUND",
                    "message": "The project was not found."
                  }
                }
              },
              "WebhookNotFound": {
                "summary": "The project has no such webhook.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "WEBHOOK_NOT_FOUND",
                    "message": "The webhook was not found."
                  }
                }
              }
            }
          }
        }
      },
      "InvalidInputOrIdempotencyMismatchOrInvalidWebhookUrlOrWebhookLimitReached": {
        "description": "A parameter or a field of the body is invalid. Or: The idempotency key was used for another request. Or: The URL of the webhook is invalid, or may not be reached. Or: The project has the most webhooks that it may have.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/IdempotencyMismatch"
                },
                {
                  "$ref": "#/components/schemas/InvalidWebhookUrl"
                },
                {
                  "$ref": "#/components/schemas/WebhookLimitReached"
                },
                {
                  "$ref": "#/components/schemas/InvalidInput"
                }
              ]
            },
            "examples": {
              "InvalidInput": {
                "summary": "A parameter or a field of the body is invalid.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "limit must be a whole number from 1 to 1,000"
                  }
                }
              },
              "IdempotencyMismatch": {
                "summary": "The idempotency key was used for another request.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "IDEMPOTENCY_MISMATCH",
                    "message": "The idempotency key was used for another request."
                  }
                }
              },
              "InvalidWebhookUrl": {
                "summary": "The URL of the webhook is invalid, or may not be reached.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "url must not point to a private address"
                  }
                }
              },
              "WebhookLimitReached": {
                "summary": "The project has the most webhooks that it may have.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "VALIDATION_ERROR",
                    "message": "A project has 50 webhooks at most."
                  }
                }
              }
            }
          }
        }
      },
      "IdempotencyMismatch": {
        "description": "The idempotency key was used for another request.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/IdempotencyMismatch"
            },
            "examples": {
              "IdempotencyMismatch": {
                "summary": "The idempotency key was used for another request.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 422,
                  "error": {
                    "error_code": "IDEMPOTENCY_MISMATCH",
                    "message": "The idempotency key was used for another request."
                  }
                }
              }
            }
          }
        }
      },
      "WebhookDisabledOrIdempotencyInProgress": {
        "description": "The webhook is disabled. Or: The first request with the idempotency key has not ended yet.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/IdempotencyInProgress"
                },
                {
                  "$ref": "#/components/schemas/WebhookDisabled"
                }
              ]
            },
            "examples": {
              "WebhookDisabled": {
                "summary": "The webhook is disabled.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 409,
                  "error": {
                    "error_code": "WEBHOOK_DISABLED",
                    "message": "The webhook is disabled. Nothing can be sent to it until it is enabled."
                  }
                }
              },
              "IdempotencyInProgress": {
                "summary": "The first request with the idempotency key has not ended yet.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 409,
                  "error": {
                    "error_code": "IDEMPOTENCY_IN_PROGRESS",
                    "message": "The first request with this idempotency key has not ended yet."
                  }
                }
              }
            }
          }
        }
      },
      "ProjectNotFoundOrWebhookNotFoundOrEventNotFound": {
        "description": "The key does not open the project, or there is no such project. Or: The project has no such webhook. Or: The project has no such event, or it is not kept any more.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/ProjectNotFound"
                },
                {
                  "$ref": "#/components/schemas/WebhookNotFound"
                },
                {
                  "$ref": "#/components/schemas/EventNotFound"
                }
              ]
            },
            "examples": {
              "ProjectNotFound": {
                "summary": "The key does not open the project, or there is no such project.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "PROJECT_NOT_FOUND",
                    "message": "The project was not found."
                  }
                }
              },
              "WebhookNotFound": {
                "summary": "The project has no such webhook.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "WEBHOOK_NOT_FOUND",
                    "message": "The webhook was not found."
                  }
                }
              },
              "EventNotFound": {
                "summary": "The project has no such event, or it is not kept any more.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "EVENT_NOT_FOUND",
                    "message": "The event was not found."
                  }
                }
              }
            }
          }
        }
      },
      "CursorExpired": {
        "description": "The events after the cursor are not all kept any more, or the database is another one. Begin again with `after=start`, or without `after`.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/CursorExpired"
            },
            "examples": {
              "CursorExpired": {
                "summary": "The events after the cursor are not all kept any more, or the database is another one. Begin again with `after=start`, or without `after`.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 410,
                  "error": {
                    "error_code": "CURSOR_EXPIRED",
                    "message": "The feed cannot go on from this cursor without a gap."
                  }
                }
              }
            }
          }
        }
      },
      "ProjectNotFoundOrEventNotFound": {
        "description": "The key does not open the project, or there is no such project. Or: The project has no such event, or it is not kept any more.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "anyOf": [
                {
                  "$ref": "#/components/schemas/ProjectNotFound"
                },
                {
                  "$ref": "#/components/schemas/EventNotFound"
                }
              ]
            },
            "examples": {
              "ProjectNotFound": {
                "summary": "The key does not open the project, or there is no such project.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "PROJECT_NOT_FOUND",
                    "message": "The project was not found."
                  }
                }
              },
              "EventNotFound": {
                "summary": "The project has no such event, or it is not kept any more.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "EVENT_NOT_FOUND",
                    "message": "The event was not found."
                  }
                }
              }
            }
          }
        }
      },
      "ApiKeyNotFound": {
        "description": "There is no such API key, or it opens projects that the own key does not open.",
        "headers": {
          "X-RateLimit-Limit": {
            "$ref": "#/components/headers/X-RateLimit-Limit"
          },
          "X-RateLimit-Remaining": {
            "$ref": "#/components/headers/X-RateLimit-Remaining"
          },
          "X-RateLimit-Reset": {
            "$ref": "#/components/headers/X-RateLimit-Reset"
          }
        },
        "content": {
          "application/json": {
            "schema": {
              "$ref": "#/components/schemas/ApiKeyNotFound"
            },
            "examples": {
              "ApiKeyNotFound": {
                "summary": "There is no such API key, or it opens projects that the own key does not open.",
                "value": {
                  "ok": false,
                  "request_id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                  "method": "PATCH",
                  "path": "/v2/projects/demo/memberships/1001/extend",
                  "code": 404,
                  "error": {
                    "error_code": "API_KEY_NOT_FOUND",
                    "message": "The API key was not found."
                  }
                }
              }
            }
          }
        }
      }
    },
    "schemas": {
      "MembershipGrantedEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "membership.granted"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "user_id": {
                "type": "string",
                "pattern": "^[0-9]{1,64}$",
                "description": "The id of the user.",
                "examples": [
                  "1001"
                ]
              },
              "new_end_date": {
                "$ref": "#/components/schemas/Instant"
              },
              "request_id": {
                "anyOf": [
                  {
                    "type": "string"
                  },
                  {
                    "type": "null"
                  }
                ],
                "description": "The request that asked for the change; null for a change by the host that names none.",
                "examples": [
                  "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                ]
              },
              "reason": {
                "type": "string",
                "description": "Why, in the words of whoever asked for the change.",
                "examples": [
                  "prepaid for two years"
                ]
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              }
            },
            "required": [
              "project_id",
              "user_id",
              "new_end_date",
              "request_id",
              "sequence"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "MembershipsImportedEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "memberships.imported"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "total": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The number of memberships."
              },
              "request_id": {
                "anyOf": [
                  {
                    "type": "string"
                  },
                  {
                    "type": "null"
                  }
                ],
                "description": "The request that asked for the change; null for a change by the host that names none.",
                "examples": [
                  "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                ]
              },
              "reason": {
                "type": "string",
                "description": "Why, in the words of whoever asked for the change.",
                "examples": [
                  "prepaid for two years"
                ]
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              }
            },
            "required": [
              "project_id",
              "total",
              "request_id",
              "sequence"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "MembershipExtendedEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "membership.extended"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "user_id": {
                "type": "string",
                "pattern": "^[0-9]{1,64}$",
                "description": "The id of the user.",
                "examples": [
                  "1001"
                ]
              },
              "new_end_date": {
                "$ref": "#/components/schemas/Instant"
              },
              "request_id": {
                "anyOf": [
                  {
                    "type": "string"
                  },
                  {
                    "type": "null"
                  }
                ],
                "description": "The request that asked for the change; null for a change by the host that names none.",
                "examples": [
                  "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                ]
              },
              "reason": {
                "type": "string",
                "description": "Why, in the words of whoever asked for the change.",
                "examples": [
                  "prepaid for two years"
                ]
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              }
            },
            "required": [
              "project_id",
              "user_id",
              "new_end_date",
              "request_id",
              "sequence"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "MembershipsExtendedEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "memberships.extended"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "new_end_date": {
                "$ref": "#/components/schemas/Instant"
              },
              "mode": {
                "type": "string",
                "enum": [
                  "never_shorten"
                ],
                "description": "If it is there, memberships that end later were left as they are."
              },
              "request_id": {
                "anyOf": [
                  {
                    "type": "string"
                  },
                  {
                    "type": "null"
                  }
                ],
                "description": "The request that asked for the change; null for a change by the host that names none.",
                "examples": [
                  "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                ]
              },
              "reason": {
                "type": "string",
                "description": "Why, in the words of whoever asked for the change.",
                "examples": [
                  "prepaid for two years"
                ]
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              }
            },
            "required": [
              "project_id",
              "new_end_date",
              "request_id",
              "sequence"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "MembershipEndedEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "membership.ended"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "user_id": {
                "anyOf": [
                  {
                    "type": "string",
                    "pattern": "^[0-9]{1,64}$",
                    "description": "The id of the user.",
                    "examples": [
                      "1001"
                    ]
                  },
                  {
                    "type": "null"
                  }
                ],
                "description": "The user; null if the person was erased.",
                "examples": [
                  "1001"
                ]
              },
              "request_id": {
                "anyOf": [
                  {
                    "type": "string"
                  },
                  {
                    "type": "null"
                  }
                ],
                "description": "The request that asked for the change; null for a change by the host that names none.",
                "examples": [
                  "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
                ]
              },
              "reason": {
                "type": "string",
                "description": "Why, in the words of whoever asked for the change.",
                "examples": [
                  "prepaid for two years"
                ]
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              }
            },
            "required": [
              "project_id",
              "user_id",
              "request_id",
              "sequence"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "MembershipExpiringEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "membership.expiring"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "user_id": {
                "type": "string",
                "pattern": "^[0-9]{1,64}$",
                "description": "The id of the user.",
                "examples": [
                  "1001"
                ]
              },
              "end_date": {
                "$ref": "#/components/schemas/Instant"
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              },
              "reminder": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "Which reminder it is: the number of seconds before the end.",
                "examples": [
                  604800
                ]
              }
            },
            "required": [
              "project_id",
              "user_id",
              "end_date",
              "sequence",
              "reminder"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "MembershipExpiredEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "membership.expired"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "user_id": {
                "type": "string",
                "pattern": "^[0-9]{1,64}$",
                "description": "The id of the user.",
                "examples": [
                  "1001"
                ]
              },
              "end_date": {
                "$ref": "#/components/schemas/Instant"
              },
              "sequence": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991,
                "description": "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
                "examples": [
                  3000000002
                ]
              }
            },
            "required": [
              "project_id",
              "user_id",
              "end_date",
              "sequence"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "WebhookPingEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "webhook.ping"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "webhook_id": {
                "$ref": "#/components/schemas/Uuid",
                "description": "The id of the webhook."
              }
            },
            "required": [
              "project_id",
              "webhook_id"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "WebhookDisabledEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "enum": [
              "webhook.disabled"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {
            "type": "object",
            "properties": {
              "project_id": {
                "type": "string",
                "description": "The id of the project.",
                "examples": [
                  "demo"
                ]
              },
              "webhook_id": {
                "$ref": "#/components/schemas/Uuid",
                "description": "The id of the webhook."
              },
              "reason": {
                "type": "string",
                "enum": [
                  "gone",
                  "failing"
                ],
                "description": "Why: it answered 410, or every attempt has failed for days."
              }
            },
            "required": [
              "project_id",
              "webhook_id",
              "reason"
            ]
          }
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "CustomEvent": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "description": "Any type that Tenure does not publish itself.",
            "examples": [
              "payment.completed"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "traceparent": {
            "type": "string",
            "description": "The trace context (W3C) of the request behind it, if that had one.",
            "examples": [
              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            ]
          },
          "data": {}
        },
        "required": [
          "type",
          "timestamp",
          "data"
        ]
      },
      "Instant": {
        "type": "string",
        "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
        "description": "A time in UTC, with milliseconds.",
        "examples": [
          "2099-01-01T00:00:00.000Z"
        ]
      },
      "Uuid": {
        "type": "string",
        "pattern": "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$",
        "format": "uuid",
        "description": "A UUID.",
        "examples": [
          "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
        ]
      },
      "StoreUnavailable": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              503
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "SERVICE_UNAVAILABLE"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "RequestId": {
        "type": "string",
        "pattern": "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$",
        "format": "uuid",
        "description": "The id of the request, a new UUID.",
        "examples": [
          "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
        ]
      },
      "InternalError": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              500
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "INTERNAL_ERROR"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "RequestHeadersTooLarge": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              431
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "REQUEST_HEADERS_TOO_LARGE"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "RateLimited": {
        "type": "object",
        "properties": {
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              429
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "message": {
                "type": "string"
              },
              "code": {
                "type": "string",
                "enum": [
                  "RATE_LIMIT_EXCEEDED"
                ]
              },
              "retry_after": {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991
              }
            },
            "required": [
              "message",
              "code",
              "retry_after"
            ]
          }
        },
        "required": [
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "PayloadTooLarge": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              413
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "PAYLOAD_TOO_LARGE"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "RequestTimeout": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              408
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "REQUEST_TIMEOUT"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "MethodNotAllowed": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              405
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "METHOD_NOT_ALLOWED"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "MalformedRequest": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              400
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "MALFORMED_REQUEST"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "InvalidInput": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "VALIDATION_ERROR"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "UnsupportedMediaType": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              415
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "UNSUPPORTED_MEDIA_TYPE"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "Forbidden": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              403
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "FORBIDDEN"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "Unauthorized": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              401
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "UNAUTHORIZED"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "Activity": {
        "type": "object",
        "properties": {
          "minutes": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "at": {
                  "$ref": "#/components/schemas/Instant",
                  "description": "When the minute began."
                },
                "delivered": {
                  "description": "Attempts that succeeded.",
                  "type": "integer",
                  "minimum": -9007199254740991,
                  "maximum": 9007199254740991,
                  "examples": [
                    0
                  ]
                },
                "failed": {
                  "description": "Attempts that failed.",
                  "type": "integer",
                  "minimum": -9007199254740991,
                  "maximum": 9007199254740991,
                  "examples": [
                    0
                  ]
                },
                "refused": {
                  "description": "Requests that a rate limit refused.",
                  "type": "integer",
                  "minimum": -9007199254740991,
                  "maximum": 9007199254740991,
                  "examples": [
                    0
                  ]
                }
              },
              "required": [
                "at",
                "delivered",
                "failed",
                "refused"
              ]
            },
            "description": "Sixty minutes, oldest first; the last one goes on."
          },
          "refusals": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "key_id": {
                  "anyOf": [
                    {
                      "type": "string"
                    },
                    {
                      "type": "null"
                    }
                  ],
                  "description": "The id of the API key; null for requests without a valid key, and for those of further keys."
                },
                "refused": {
                  "type": "integer",
                  "minimum": -9007199254740991,
                  "maximum": 9007199254740991,
                  "examples": [
                    0
                  ]
                }
              },
              "required": [
                "key_id",
                "refused"
              ]
            },
            "description": "Who was refused, most often first. In each minute, a hundred keys are told from others."
          }
        },
        "required": [
          "minutes",
          "refusals"
        ]
      },
      "Status": {
        "type": "object",
        "properties": {
          "versions": {
            "type": "object",
            "properties": {
              "tenure": {
                "type": "string",
                "examples": [
                  "1.0.0"
                ]
              },
              "api": {
                "type": "string",
                "enum": [
                  "v2"
                ]
              }
            },
            "required": [
              "tenure",
              "api"
            ]
          },
          "stores": {
            "type": "object",
            "properties": {
              "memberships": {
                "type": "boolean",
                "description": "Whether the store answers and takes changes.",
                "examples": [
                  true
                ]
              },
              "webhooks": {
                "type": "boolean",
                "description": "Whether the store answers and takes changes.",
                "examples": [
                  true
                ]
              },
              "api_keys": {
                "type": "boolean",
                "description": "Whether the store answers and takes changes.",
                "examples": [
                  true
                ]
              },
              "deliveries": {
                "type": "boolean",
                "description": "Whether the store answers and takes changes.",
                "examples": [
                  true
                ]
              },
              "rate_limits": {
                "type": "boolean",
                "description": "Whether the store answers and takes changes.",
                "examples": [
                  true
                ]
              }
            },
            "required": [
              "memberships",
              "webhooks",
              "api_keys",
              "deliveries",
              "rate_limits"
            ]
          },
          "backlog": {
            "anyOf": [
              {
                "type": "object",
                "properties": {
                  "waiting": {
                    "description": "A number up to 10,000, which stands for as many or more.",
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 10000,
                    "examples": [
                      0
                    ]
                  },
                  "due_for_ms": {
                    "anyOf": [
                      {
                        "type": "integer",
                        "minimum": -9007199254740991,
                        "maximum": 9007199254740991
                      },
                      {
                        "type": "null"
                      }
                    ],
                    "description": "For how many milliseconds the oldest due delivery has been due; null if none is. It is looked for among the first 10,000 webhooks with due deliveries.",
                    "examples": [
                      null
                    ]
                  }
                },
                "required": [
                  "waiting",
                  "due_for_ms"
                ]
              },
              {
                "type": "null"
              }
            ],
            "description": "What is left to deliver; null if the store does not answer."
          },
          "failed_deliveries": {
            "description": "The deliveries that were given up, are kept and can be replayed, up to 10,000, which stands for as many or more; null if the store does not answer.",
            "anyOf": [
              {
                "type": "integer",
                "minimum": 0,
                "maximum": 10000,
                "description": "A number up to 10,000, which stands for as many or more.",
                "examples": [
                  0
                ]
              },
              {
                "type": "null"
              }
            ]
          },
          "disabled_webhooks": {
            "description": "The webhooks that are disabled, up to 10,000, which stands for as many or more; null if the store does not answer.",
            "anyOf": [
              {
                "type": "integer",
                "minimum": 0,
                "maximum": 10000,
                "description": "A number up to 10,000, which stands for as many or more.",
                "examples": [
                  0
                ]
              },
              {
                "type": "null"
              }
            ]
          },
          "suspended_keys": {
            "type": "array",
            "items": {
              "type": "string"
            },
            "description": "The ids of the API keys that the server which answers has suspended.",
            "examples": [
              []
            ]
          }
        },
        "required": [
          "versions",
          "stores",
          "backlog",
          "failed_deliveries",
          "disabled_webhooks",
          "suspended_keys"
        ]
      },
      "Identity": {
        "type": "object",
        "properties": {
          "key_id": {
            "type": "string",
            "description": "The id of the API key, or of whom else the host named.",
            "examples": [
              "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
            ]
          },
          "role": {
            "$ref": "#/components/schemas/Role"
          },
          "projects": {
            "anyOf": [
              {
                "type": "string",
                "enum": [
                  "all"
                ]
              },
              {
                "type": "array",
                "items": {
                  "type": "string"
                }
              }
            ],
            "description": "Ids of the projects that the key opens; `all` for those there are and will be.",
            "examples": [
              [
                "demo"
              ]
            ]
          },
          "read_only": {
            "type": "boolean",
            "description": "Whether the sender may change nothing.",
            "examples": [
              false
            ]
          }
        },
        "required": [
          "key_id",
          "role",
          "projects",
          "read_only"
        ]
      },
      "Role": {
        "type": "string",
        "enum": [
          "client",
          "operator",
          "admin"
        ],
        "description": "What the holder of a key may do; each role may also do what those before it may.",
        "examples": [
          "client"
        ]
      },
      "AuditRow": {
        "type": "object",
        "properties": {
          "at": {
            "$ref": "#/components/schemas/Instant"
          },
          "action": {
            "type": "string",
            "enum": [
              "granted",
              "imported",
              "extended",
              "bulk_extended",
              "bulk_lengthened",
              "ended",
              "expiring",
              "expired",
              "person_erased",
              "webhook_created",
              "webhook_deleted",
              "webhook_enabled",
              "webhook_disabled",
              "secret_rotated",
              "signing_key_added",
              "secret_shown",
              "data_shown",
              "project_created",
              "project_deleted",
              "key_issued",
              "key_opened",
              "key_revoked"
            ],
            "description": "What was done; `bulk_lengthened` has left memberships that ended later, and `expiring` and `expired` are announcements of the date."
          },
          "from": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          },
          "to": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          },
          "key_id": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "The id of the API key, or of whom else the host named."
          },
          "key_name": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "The name of the API key."
          },
          "request_id": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ]
          },
          "reason": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ]
          },
          "user_id": {
            "anyOf": [
              {
                "type": "string",
                "pattern": "^[0-9]{1,64}$",
                "description": "The id of the user.",
                "examples": [
                  "1001"
                ]
              },
              {
                "type": "null"
              }
            ],
            "description": "Whose membership was changed; null if all were, or something else, or if the user was erased."
          },
          "subject": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "The id of the webhook, the API key or the project that was changed; null for memberships.",
            "examples": [
              null
            ]
          }
        },
        "required": [
          "at",
          "action",
          "from",
          "to",
          "key_id",
          "key_name",
          "request_id",
          "reason",
          "user_id",
          "subject"
        ]
      },
      "ApiKeyNotFound": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              404
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "API_KEY_NOT_FOUND"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "IdempotencyInProgress": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              409
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "IDEMPOTENCY_IN_PROGRESS"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "IdempotencyMismatch": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "IDEMPOTENCY_MISMATCH"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "ProjectNotFound": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              404
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "PROJECT_NOT_FOUND"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "IssuedApiKey": {
        "type": "object",
        "properties": {
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the key."
          },
          "token": {
            "description": "The bearer token, which is shown this once; null in the answer to a repetition.",
            "anyOf": [
              {
                "type": "string",
                "examples": [
                  "tnr_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"
                ]
              },
              {
                "type": "null"
              }
            ]
          }
        },
        "required": [
          "id",
          "token"
        ]
      },
      "NewApiKey": {
        "type": "object",
        "properties": {
          "projects": {
            "anyOf": [
              {
                "type": "string",
                "enum": [
                  "all"
                ]
              },
              {
                "type": "array",
                "items": {
                  "type": "string"
                }
              }
            ],
            "description": "Ids of the projects that the key opens; `all` for those there are and will be.",
            "examples": [
              [
                "demo"
              ]
            ]
          },
          "role": {
            "$ref": "#/components/schemas/Role"
          },
          "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "description": "What people call the key.",
            "examples": [
              "nightly import"
            ]
          },
          "expires_at": {
            "description": "A future date. By default, the key never expires.",
            "anyOf": [
              {
                "type": "integer",
                "minimum": 1000000000000,
                "maximum": 9999999999999
              },
              {
                "type": "string",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"
              }
            ],
            "examples": [
              "2099-01-01T00:00:00.000Z"
            ]
          }
        },
        "required": [
          "projects",
          "role"
        ]
      },
      "ApiKey": {
        "type": "object",
        "properties": {
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the key."
          },
          "name": {
            "anyOf": [
              {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "description": "What people call the key.",
                "examples": [
                  "nightly import"
                ]
              },
              {
                "type": "null"
              }
            ]
          },
          "role": {
            "$ref": "#/components/schemas/Role"
          },
          "projects": {
            "anyOf": [
              {
                "type": "string",
                "enum": [
                  "all"
                ]
              },
              {
                "type": "array",
                "items": {
                  "type": "string"
                }
              }
            ],
            "description": "Ids of the projects that the key opens; `all` for those there are and will be.",
            "examples": [
              [
                "demo"
              ]
            ]
          },
          "created_at": {
            "$ref": "#/components/schemas/Instant"
          },
          "expires_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          },
          "revoked_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          },
          "last_used_at": {
            "description": "When the key was last used, to about a minute.",
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          }
        },
        "required": [
          "id",
          "name",
          "role",
          "projects",
          "created_at",
          "expires_at",
          "revoked_at",
          "last_used_at"
        ]
      },
      "Ticket": {
        "type": "object",
        "properties": {
          "ticket": {
            "type": "string",
            "examples": [
              "tkt_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"
            ]
          },
          "expires_at": {
            "$ref": "#/components/schemas/Instant"
          }
        },
        "required": [
          "ticket",
          "expires_at"
        ]
      },
      "NewTicket": {
        "type": "object",
        "properties": {
          "projects": {
            "anyOf": [
              {
                "type": "string",
                "enum": [
                  "all"
                ]
              },
              {
                "type": "array",
                "items": {
                  "type": "string"
                },
                "minItems": 1,
                "maxItems": 100
              }
            ],
            "description": "Ids of the projects whose feeds the ticket opens; `all` for those that the key opens.",
            "examples": [
              [
                "demo"
              ]
            ]
          }
        },
        "required": [
          "projects"
        ]
      },
      "EventNotFound": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              404
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "EVENT_NOT_FOUND"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "PublishedEvent": {
        "type": "object",
        "properties": {
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the event."
          },
          "type": {
            "type": "string",
            "description": "The type of an event.",
            "examples": [
              "payment.completed"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "data": {},
          "deliveries": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/DeliveryOfEvent"
            }
          }
        },
        "required": [
          "id",
          "type",
          "timestamp",
          "data",
          "deliveries"
        ]
      },
      "DeliveryOfEvent": {
        "type": "object",
        "properties": {
          "webhook_id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the webhook."
          },
          "state": {
            "type": "string",
            "enum": [
              "waiting",
              "delivered",
              "failed",
              "cancelled"
            ],
            "description": "Whether it waits for an attempt, or how it has ended.",
            "examples": [
              "delivered"
            ]
          },
          "due_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When the next attempt is due; null if the delivery has ended.",
            "examples": [
              null
            ]
          },
          "attempts": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Attempt"
            }
          }
        },
        "required": [
          "webhook_id",
          "state",
          "due_at",
          "attempts"
        ]
      },
      "Attempt": {
        "type": "object",
        "properties": {
          "at": {
            "$ref": "#/components/schemas/Instant"
          },
          "duration_ms": {
            "type": "integer",
            "minimum": -9007199254740991,
            "maximum": 9007199254740991,
            "examples": [
              84
            ]
          },
          "status": {
            "anyOf": [
              {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991
              },
              {
                "type": "null"
              }
            ],
            "description": "The status of the receiver's response; null if there was none.",
            "examples": [
              204
            ]
          },
          "error": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "Why the attempt failed; null if it succeeded.",
            "examples": [
              null
            ]
          }
        },
        "required": [
          "at",
          "duration_ms",
          "status",
          "error"
        ]
      },
      "CursorExpired": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              410
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "CURSOR_EXPIRED"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "FeedEvent": {
        "type": "object",
        "properties": {
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the event."
          },
          "type": {
            "type": "string",
            "description": "The type of an event.",
            "examples": [
              "payment.completed"
            ]
          },
          "timestamp": {
            "$ref": "#/components/schemas/Instant"
          },
          "data": {}
        },
        "required": [
          "id",
          "type",
          "timestamp",
          "data"
        ]
      },
      "Publication": {
        "type": "object",
        "properties": {
          "type": {
            "type": "string",
            "description": "Any type but those of the events that Tenure itself publishes.",
            "examples": [
              "payment.completed"
            ]
          },
          "data": {}
        },
        "required": [
          "type",
          "data"
        ]
      },
      "WebhookDisabled": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              409
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "WEBHOOK_DISABLED"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "WebhookNotFound": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              404
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "WEBHOOK_NOT_FOUND"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "Replay": {
        "anyOf": [
          {
            "type": "object",
            "properties": {
              "event_id": {
                "$ref": "#/components/schemas/Uuid",
                "description": "The id of the event."
              }
            },
            "required": [
              "event_id"
            ]
          },
          {
            "type": "object",
            "properties": {
              "since": {
                "anyOf": [
                  {
                    "type": "integer",
                    "minimum": 1000000000000,
                    "maximum": 9999999999999
                  },
                  {
                    "type": "string",
                    "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"
                  }
                ],
                "examples": [
                  "2099-01-01T00:00:00.000Z"
                ]
              }
            },
            "required": [
              "since"
            ]
          }
        ]
      },
      "ShownDelivery": {
        "type": "object",
        "properties": {
          "event_id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the event."
          },
          "type": {
            "type": "string",
            "description": "The type of an event.",
            "examples": [
              "payment.completed"
            ]
          },
          "state": {
            "type": "string",
            "enum": [
              "waiting",
              "delivered",
              "failed",
              "cancelled"
            ],
            "description": "Whether it waits for an attempt, or how it has ended.",
            "examples": [
              "delivered"
            ]
          },
          "due_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When the next attempt is due; null if the delivery has ended.",
            "examples": [
              null
            ]
          },
          "attempts": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/AnsweredAttempt"
            }
          },
          "request": {
            "type": "object",
            "properties": {
              "method": {
                "type": "string",
                "enum": [
                  "POST"
                ]
              },
              "url": {
                "type": "string",
                "examples": [
                  "https://receiver.example/hooks"
                ]
              },
              "headers": {
                "type": "object",
                "description": "The header fields; null for those that each attempt makes anew.",
                "examples": [
                  {
                    "content-type": "application/json",
                    "user-agent": "Tenure",
                    "webhook-id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                    "webhook-timestamp": null,
                    "webhook-signature": null
                  }
                ],
                "additionalProperties": {
                  "anyOf": [
                    {
                      "type": "string"
                    },
                    {
                      "type": "null"
                    }
                  ]
                }
              },
              "body": {
                "type": "string",
                "description": "The body, as it is sent.",
                "examples": [
                  "{\"type\":\"payment.completed\",\"timestamp\":\"2099-01-01T00:00:00.000Z\",\"data\":{\"invoice\":\"2099-117\"}}"
                ]
              }
            },
            "required": [
              "method",
              "url",
              "headers",
              "body"
            ],
            "description": "What every attempt sends."
          }
        },
        "required": [
          "event_id",
          "type",
          "state",
          "due_at",
          "attempts",
          "request"
        ]
      },
      "AnsweredAttempt": {
        "type": "object",
        "properties": {
          "at": {
            "$ref": "#/components/schemas/Instant"
          },
          "duration_ms": {
            "type": "integer",
            "minimum": -9007199254740991,
            "maximum": 9007199254740991,
            "examples": [
              84
            ]
          },
          "status": {
            "anyOf": [
              {
                "type": "integer",
                "minimum": -9007199254740991,
                "maximum": 9007199254740991
              },
              {
                "type": "null"
              }
            ],
            "description": "The status of the receiver's response; null if there was none.",
            "examples": [
              204
            ]
          },
          "error": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "Why the attempt failed; null if it succeeded.",
            "examples": [
              null
            ]
          },
          "response_body": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "The beginning of the receiver's response, up to a kilobyte; null if there was none.",
            "examples": [
              ""
            ]
          }
        },
        "required": [
          "at",
          "duration_ms",
          "status",
          "error",
          "response_body"
        ]
      },
      "Delivery": {
        "type": "object",
        "properties": {
          "event_id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the event."
          },
          "type": {
            "type": "string",
            "description": "The type of an event.",
            "examples": [
              "payment.completed"
            ]
          },
          "state": {
            "type": "string",
            "enum": [
              "waiting",
              "delivered",
              "failed",
              "cancelled"
            ],
            "description": "Whether it waits for an attempt, or how it has ended.",
            "examples": [
              "delivered"
            ]
          },
          "due_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When the next attempt is due; null if the delivery has ended.",
            "examples": [
              null
            ]
          },
          "attempts": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Attempt"
            }
          }
        },
        "required": [
          "event_id",
          "type",
          "state",
          "due_at",
          "attempts"
        ]
      },
      "WebhookDetails": {
        "type": "object",
        "properties": {
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the webhook."
          },
          "url": {
            "type": "string",
            "maxLength": 2048,
            "description": "Where events are sent: a public http or https URL without credentials.",
            "examples": [
              "https://receiver.example/hooks"
            ]
          },
          "event_types": {
            "anyOf": [
              {
                "type": "array",
                "items": {
                  "type": "string",
                  "description": "The type of an event.",
                  "examples": [
                    "payment.completed"
                  ]
                },
                "minItems": 1,
                "maxItems": 100
              },
              {
                "type": "null"
              }
            ],
            "description": "The types of events that are sent; null for all.",
            "examples": [
              null
            ]
          },
          "created_at": {
            "$ref": "#/components/schemas/Instant"
          },
          "disabled_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When it was disabled; null while it is enabled.",
            "examples": [
              null
            ]
          },
          "failing_since": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When an attempt first failed since one succeeded; null if none has.",
            "examples": [
              null
            ]
          },
          "failures": {
            "type": "integer",
            "minimum": -9007199254740991,
            "maximum": 9007199254740991,
            "description": "How many attempts have failed since one succeeded.",
            "examples": [
              0
            ]
          },
          "secret": {
            "type": "string",
            "description": "The secret that signs notifications: `whsec_` and base64. `unreadable_` and a UUID, which nobody signs with, stand for one that the server cannot read.",
            "examples": [
              "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
            ]
          }
        },
        "required": [
          "id",
          "url",
          "event_types",
          "created_at",
          "disabled_at",
          "failing_since",
          "failures",
          "secret"
        ]
      },
      "WebhookHealth": {
        "type": "object",
        "properties": {
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the webhook."
          },
          "url": {
            "type": "string",
            "maxLength": 2048,
            "description": "Where events are sent: a public http or https URL without credentials.",
            "examples": [
              "https://receiver.example/hooks"
            ]
          },
          "event_types": {
            "anyOf": [
              {
                "type": "array",
                "items": {
                  "type": "string",
                  "description": "The type of an event.",
                  "examples": [
                    "payment.completed"
                  ]
                },
                "minItems": 1,
                "maxItems": 100
              },
              {
                "type": "null"
              }
            ],
            "description": "The types of events that are sent; null for all.",
            "examples": [
              null
            ]
          },
          "created_at": {
            "$ref": "#/components/schemas/Instant"
          },
          "disabled_at": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When it was disabled; null while it is enabled.",
            "examples": [
              null
            ]
          },
          "failing_since": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ],
            "description": "When an attempt first failed since one succeeded; null if none has.",
            "examples": [
              null
            ]
          },
          "failures": {
            "type": "integer",
            "minimum": -9007199254740991,
            "maximum": 9007199254740991,
            "description": "How many attempts have failed since one succeeded.",
            "examples": [
              0
            ]
          }
        },
        "required": [
          "id",
          "url",
          "event_types",
          "created_at",
          "disabled_at",
          "failing_since",
          "failures"
        ]
      },
      "Webhook": {
        "type": "object",
        "properties": {
          "url": {
            "type": "string",
            "maxLength": 2048,
            "description": "Where events are sent: a public http or https URL without credentials.",
            "examples": [
              "https://receiver.example/hooks"
            ]
          },
          "id": {
            "$ref": "#/components/schemas/Uuid",
            "description": "The id of the webhook."
          },
          "secret": {
            "type": "string",
            "description": "The secret that signs notifications: `whsec_` and base64. `unreadable_` and a UUID, which nobody signs with, stand for one that the server cannot read.",
            "examples": [
              "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
            ]
          }
        },
        "required": [
          "url",
          "id",
          "secret"
        ]
      },
      "WebhookLimitReached": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "VALIDATION_ERROR"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "InvalidWebhookUrl": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "VALIDATION_ERROR"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "NewWebhook": {
        "type": "object",
        "properties": {
          "url": {
            "type": "string",
            "maxLength": 2048,
            "description": "Where events are sent: a public http or https URL without credentials.",
            "examples": [
              "https://receiver.example/hooks"
            ]
          },
          "event_types": {
            "type": "array",
            "items": {
              "type": "string",
              "description": "The type of an event.",
              "examples": [
                "payment.completed"
              ]
            },
            "minItems": 1,
            "maxItems": 100,
            "description": "The types of events to send; all by default."
          }
        },
        "required": [
          "url"
        ]
      },
      "Project": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string",
            "description": "The id of the project.",
            "examples": [
              "demo"
            ]
          },
          "memberships": {
            "description": "The number of memberships, with those that have expired.",
            "type": "integer",
            "minimum": 0,
            "maximum": 9007199254740991,
            "examples": [
              1
            ]
          },
          "webhooks": {
            "description": "The number of webhooks.",
            "type": "integer",
            "minimum": 0,
            "maximum": 9007199254740991,
            "examples": [
              1
            ]
          },
          "last_bulk_end_date": {
            "description": "The date that all memberships were last extended to.",
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          }
        },
        "required": [
          "id",
          "memberships",
          "webhooks",
          "last_bulk_end_date"
        ]
      },
      "ListedProject": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string",
            "description": "The id of the project.",
            "examples": [
              "demo"
            ]
          },
          "memberships": {
            "description": "The number of memberships, with those that have expired.",
            "type": "integer",
            "minimum": 0,
            "maximum": 9007199254740991,
            "examples": [
              1
            ]
          },
          "webhooks": {
            "description": "The number of webhooks.",
            "type": "integer",
            "minimum": 0,
            "maximum": 9007199254740991,
            "examples": [
              1
            ]
          }
        },
        "required": [
          "id",
          "memberships",
          "webhooks"
        ]
      },
      "MembershipNotFound": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              404
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "MEMBERSHIP_NOT_FOUND"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "MembershipChange": {
        "type": "object",
        "properties": {
          "at": {
            "$ref": "#/components/schemas/Instant"
          },
          "action": {
            "type": "string",
            "enum": [
              "granted",
              "imported",
              "extended",
              "bulk_extended",
              "bulk_lengthened",
              "ended",
              "expiring",
              "expired"
            ],
            "description": "What was done; `bulk_lengthened` has left memberships that ended later, and `expiring` and `expired` are announcements of the date."
          },
          "from": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          },
          "to": {
            "anyOf": [
              {
                "$ref": "#/components/schemas/Instant"
              },
              {
                "type": "null"
              }
            ]
          },
          "key_id": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "The id of the API key, or of whom else the host named."
          },
          "key_name": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ],
            "description": "The name of the API key."
          },
          "request_id": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ]
          },
          "reason": {
            "anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ]
          }
        },
        "required": [
          "at",
          "action",
          "from",
          "to",
          "key_id",
          "key_name",
          "request_id",
          "reason"
        ]
      },
      "Membership": {
        "type": "object",
        "properties": {
          "user_id": {
            "type": "string",
            "pattern": "^[0-9]{1,64}$",
            "description": "The id of the user.",
            "examples": [
              "1001"
            ]
          },
          "end_date": {
            "$ref": "#/components/schemas/Instant"
          },
          "state": {
            "$ref": "#/components/schemas/MembershipState"
          }
        },
        "required": [
          "user_id",
          "end_date",
          "state"
        ]
      },
      "MembershipState": {
        "type": "string",
        "enum": [
          "active",
          "expired"
        ],
        "description": "Whether the end date is over."
      },
      "Grant": {
        "type": "object",
        "properties": {
          "end_date": {
            "anyOf": [
              {
                "type": "integer",
                "minimum": 1000000000000,
                "maximum": 9999999999999
              },
              {
                "type": "string",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"
              }
            ],
            "description": "A date, which may be over: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
            "examples": [
              "2099-01-01T00:00:00.000Z"
            ]
          },
          "reason": {
            "type": "string",
            "pattern": "^[^\\0\\p{Cs}]{1,500}$",
            "description": "Why, in 1 to 500 characters. The audit trail and the event keep it.",
            "examples": [
              "Compensation for the outage of 3 May"
            ]
          }
        },
        "required": [
          "end_date"
        ]
      },
      "InvalidLines": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "errors": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "error_code": {
                  "type": "string",
                  "enum": [
                    "VALIDATION_ERROR"
                  ]
                },
                "message": {
                  "type": "string"
                },
                "line": {
                  "type": "integer",
                  "minimum": -9007199254740991,
                  "maximum": 9007199254740991,
                  "description": "The number of the line; the first one is 1."
                }
              },
              "required": [
                "error_code",
                "message",
                "line"
              ]
            },
            "minItems": 1,
            "maxItems": 100
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "errors"
        ]
      },
      "Import": {
        "type": "string",
        "description": "A JSON object in each line, with `user_id` and `end_date`: a date, which may be over, in either format of `extend`. At most 10,000 lines and 2 MiB.",
        "examples": [
          "{\"user_id\":\"1001\",\"end_date\":\"2099-01-01T00:00:00.000Z\"}\n{\"user_id\":\"1002\",\"end_date\":4070908800000}\n"
        ]
      },
      "EndDateNotInFuture": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "VALIDATION_ERROR"
                ]
              },
              "message": {
                "type": "string"
              }
            },
            "required": [
              "error_code",
              "message"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "InvalidEndDate": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              422
            ]
          },
          "errors": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "error_code": {
                  "type": "string",
                  "enum": [
                    "VALIDATION_ERROR"
                  ]
                },
                "message": {
                  "type": "string"
                }
              },
              "required": [
                "error_code",
                "message"
              ]
            },
            "minItems": 2,
            "maxItems": 2
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "errors"
        ]
      },
      "BulkExtended": {
        "type": "object",
        "properties": {
          "new_end_date": {
            "$ref": "#/components/schemas/Instant"
          },
          "would_shorten": {
            "description": "Of a dry run, the number of memberships that would end earlier than they do now.",
            "type": "integer",
            "minimum": -9007199254740991,
            "maximum": 9007199254740991
          }
        },
        "required": [
          "new_end_date"
        ]
      },
      "BulkExtension": {
        "type": "object",
        "properties": {
          "extend": {
            "anyOf": [
              {
                "type": "integer",
                "minimum": 1000000000000,
                "maximum": 9999999999999
              },
              {
                "type": "string",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"
              }
            ],
            "description": "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
            "examples": [
              "2099-01-01T00:00:00.000Z"
            ]
          },
          "dry_run": {
            "description": "If true, nothing is changed. The response is that of the same request without it.",
            "type": "boolean"
          },
          "reason": {
            "type": "string",
            "pattern": "^[^\\0\\p{Cs}]{1,500}$",
            "description": "Why, in 1 to 500 characters. The audit trail and the event keep it.",
            "examples": [
              "Compensation for the outage of 3 May"
            ]
          },
          "mode": {
            "description": "Whether memberships that end later are set, too, or left as they are. The default is the server's.",
            "type": "string",
            "enum": [
              "set",
              "never_shorten"
            ]
          }
        },
        "required": [
          "extend"
        ]
      },
      "EndDateConflict": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "boolean",
            "enum": [
              false
            ]
          },
          "request_id": {
            "$ref": "#/components/schemas/RequestId"
          },
          "method": {
            "type": "string"
          },
          "path": {
            "type": "string"
          },
          "code": {
            "type": "number",
            "enum": [
              409
            ]
          },
          "error": {
            "type": "object",
            "properties": {
              "error_code": {
                "type": "string",
                "enum": [
                  "END_DATE_CONFLICT"
                ]
              },
              "message": {
                "type": "string"
              },
              "current_end_date": {
                "$ref": "#/components/schemas/Instant"
              }
            },
            "required": [
              "error_code",
              "message",
              "current_end_date"
            ]
          }
        },
        "required": [
          "ok",
          "request_id",
          "method",
          "path",
          "code",
          "error"
        ]
      },
      "Extended": {
        "type": "object",
        "properties": {
          "new_end_date": {
            "$ref": "#/components/schemas/Instant"
          }
        },
        "required": [
          "new_end_date"
        ]
      },
      "Extension": {
        "type": "object",
        "properties": {
          "extend": {
            "anyOf": [
              {
                "type": "integer",
                "minimum": 1000000000000,
                "maximum": 9999999999999
              },
              {
                "type": "string",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"
              }
            ],
            "description": "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
            "examples": [
              "2099-01-01T00:00:00.000Z"
            ]
          },
          "dry_run": {
            "description": "If true, nothing is changed. The response is that of the same request without it.",
            "type": "boolean"
          },
          "reason": {
            "type": "string",
            "pattern": "^[^\\0\\p{Cs}]{1,500}$",
            "description": "Why, in 1 to 500 characters. The audit trail and the event keep it.",
            "examples": [
              "Compensation for the outage of 3 May"
            ]
          },
          "expected_end_date": {
            "description": "If given, the membership is changed only if it has this end date.",
            "anyOf": [
              {
                "type": "integer",
                "minimum": 1000000000000,
                "maximum": 9999999999999
              },
              {
                "type": "string",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"
              }
            ],
            "examples": [
              "2099-01-01T00:00:00.000Z"
            ]
          },
          "mode": {
            "description": "Whether a membership that ends later is set, too, which is the default, or left as it is.",
            "type": "string",
            "enum": [
              "set",
              "never_shorten"
            ]
          }
        },
        "required": [
          "extend"
        ]
      }
    },
    "securitySchemes": {
      "bearer": {
        "type": "http",
        "scheme": "Bearer",
        "description": "The token of an API key."
      }
    }
  }
}
