export * from "@tenure/testing"
