"""Chats as the models behind the embedded engine read them: text and images to token ids, and ids back to text."""
