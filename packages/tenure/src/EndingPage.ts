export * from "@tenure/core/EndingPage"
